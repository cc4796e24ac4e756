package main

import (
	"context"
	"errors"
	"os"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/metrics"
)

// servedStore is a store as the API serves it.
type servedStore struct{ store *sqlite.Store }

// Stats implements api.Store.
func (s servedStore) Stats(ctx context.Context) (api.StoreStats, error) {
	st, err := s.store.Stats(ctx)
	id := s.store.Identity()
	return api.StoreStats{
		StoreID: id.StoreID, Boot: id.Boot, Path: st.Path, Logs: st.Logs, Events: st.Events, Deleted: st.Deleted, Position: st.Position,
		Bytes: st.Bytes, Free: st.Free, WAL: st.WAL, Changes: st.Changes, Groups: st.Groups, Syncs: st.Syncs, Durability: st.Durability.String(),
	}, err
}

// metrics are its figures for those who watch it.
func (s servedStore) metrics(ctx context.Context) (metrics.StoreStats, error) {
	st, err := s.store.Stats(ctx)
	return metrics.StoreStats{
		Logs: st.Logs, Events: st.Events, Deleted: st.Deleted, Bytes: st.Bytes, Free: st.Free, WAL: st.WAL, Failed: s.store.Failed() != nil,
		CommitChanges: st.GroupSizes, CommitSeconds: st.GroupSeconds, SyncSeconds: st.SyncSeconds,
	}, err
}

// Check implements api.Store.
func (s servedStore) Check(ctx context.Context, pages bool, progress func(done, total int64)) (api.StoreReport, error) {
	report, err := s.store.Check(ctx, sqlite.CheckOptions{Pages: pages, Progress: progress})
	out := api.StoreReport{Logs: report.Logs, Events: report.Events, Rows: report.Rows, More: report.More}
	for _, p := range report.Problems {
		out.Problems = append(out.Problems, api.StoreProblem{Code: string(p.Code), Session: p.ID, Seq: p.Seq, Detail: p.Detail})
	}
	return out, err
}

// Backup implements api.Store.
func (s servedStore) Backup(ctx context.Context, path string, progress func(done, total int64)) (int64, error) {
	err := s.store.Backup(ctx, path, func(done, total int) { progress(int64(done), int64(total)) })
	if target, ok := errors.AsType[*sqlite.TargetError](err); ok {
		return 0, &api.TargetError{Path: target.Path, Err: err}
	}
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, &api.TargetError{Path: path, Err: err}
	}
	return info.Size(), nil
}
