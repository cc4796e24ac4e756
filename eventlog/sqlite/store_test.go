package sqlite_test

import (
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/sqlite"
)

func opener(o sqlite.Options) func(t testing.TB) *sqlite.Store {
	return func(t testing.TB) *sqlite.Store {
		s, err := sqlite.Open(t.Context(), t.TempDir(), o)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		return s
	}
}

func TestStore(t *testing.T) {
	open := opener(sqlite.Options{})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return open(t) })
}

func TestRows(t *testing.T) {
	open := opener(sqlite.Options{})
	logtest.RunRows(t, func(t testing.TB) logtest.RowStore { return open(t) })
}

func TestRelaxedStore(t *testing.T) {
	open := opener(sqlite.Options{Durability: sqlite.Relaxed, Readers: 1})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return open(t) })
}

func TestStoreInShortPages(t *testing.T) {
	open := opener(sqlite.Options{Durability: sqlite.Relaxed})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return logtest.Short(open(t), 1) })
}
