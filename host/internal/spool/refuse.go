package spool

import (
	"context"

	"github.com/foldhost/foldhost/eventlog"
)

var errReplay = &eventlog.InvalidError{Reason: "a replayed log is only read: import it into a store to go on with it"}

// Append, List, Tail and Delete implement eventlog.Store by refusing; Lookup knows no key.

func (s *Store) Append(context.Context, eventlog.Batch) (eventlog.Commit, error) {
	return eventlog.Commit{}, errReplay
}

func (s *Store) List(context.Context, eventlog.ListQuery) (eventlog.ListPage, error) {
	return eventlog.ListPage{}, errReplay
}

func (s *Store) Tail(context.Context, eventlog.TailQuery) (eventlog.TailPage, error) {
	return eventlog.TailPage{}, errReplay
}

func (s *Store) Lookup(context.Context, eventlog.Life, string) (eventlog.KeyRecord, bool, error) {
	return eventlog.KeyRecord{}, false, nil
}

func (s *Store) Delete(context.Context, eventlog.Life) error { return errReplay }
