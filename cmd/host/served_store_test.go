package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/sqlite"
)

func TestServedStore(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	store, err := sqlite.Open(ctx, dir, sqlite.Options{Durability: sqlite.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Create(ctx, eventlog.Creation{Header: event.Header{ID: "s"}}); err != nil {
		t.Fatal(err)
	}
	s := servedStore{store}
	st, err := s.Stats(ctx)
	if err != nil || st.StoreID == "" || st.Boot != 1 || st.Logs != 1 || st.Position != 1 || st.Durability != "relaxed" || st.Bytes == 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := os.Stat(st.Path); err != nil {
		t.Error(err)
	}
	told := 0
	report, err := s.Check(ctx, true, func(done, total int64) { told++ })
	if err != nil || report.Logs != 1 || len(report.Problems) != 0 || told == 0 {
		t.Errorf("%+v, %v, told %d times", report, err, told)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	told = 0
	size, err := s.Backup(ctx, path, func(done, total int64) { told++ })
	if info, lost := os.Stat(path); err != nil || lost != nil || info.Size() != size || told == 0 {
		t.Errorf("%d bytes, %v, %v, told %d times", size, err, lost, told)
	}
	for _, path := range []string{path, filepath.Join(dir, "none", "copy.db")} {
		_, err := s.Backup(ctx, path, func(done, total int64) {})
		if target, ok := errors.AsType[*api.TargetError](err); !ok || target.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := s.Backup(ctx, path, func(done, total int64) {}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}
