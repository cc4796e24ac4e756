package sqlite

import (
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
)

func opener(o Options) func(t testing.TB) *Store {
	return func(t testing.TB) *Store {
		s, err := Open(t.Context(), t.TempDir(), o)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		return s
	}
}

func TestStore(t *testing.T) {
	open := opener(Options{})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return open(t) })
}

func TestRows(t *testing.T) {
	open := opener(Options{})
	logtest.RunRows(t, func(t testing.TB) logtest.RowStore { return open(t) })
}

func TestRelaxedStore(t *testing.T) {
	notUnderRace(t)
	open := opener(Options{Durability: Relaxed, Readers: 1})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return open(t) })
}

func TestStoreInShortPages(t *testing.T) {
	notUnderRace(t)
	open := opener(Options{Durability: Relaxed})
	logtest.Run(t, func(t testing.TB) eventlog.Store { return logtest.Short(open(t), 1) })
}
