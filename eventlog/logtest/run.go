// Package logtest holds the suite that every store of logs passes, and a store for tests that is as slow, short and faulty as
// its reader wishes.
//
// The suite reads like the contract in eventlog: one law, one function. It never sleeps and measures no time.
package logtest

import (
	"errors"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
)

// Run checks every law of eventlog.Store against stores that open makes: a fresh and empty one for each law, which Run closes.
// What else a store needs to be torn down, open leaves to t.Cleanup.
func Run(t *testing.T, open func(t testing.TB) eventlog.Store) {
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
					t.Errorf("Close: %v", err)
				}
			})
			l.check(kit{TB: t, Store: s})
		})
	}
}

// law is one promise, given an empty store.
type law struct {
	name  string
	check func(k kit)
}

var laws = []law{
	{"a store has an identity", identity},
	{"a new log is as it was created", created},
	{"an id is taken once", idTaken},
	{"a creation that fails leaves nothing", creationFails},
	{"a creation may read the store", creationReads},
	{"a long creation comes back whole", creationLong},

	{"seqs are dense from 0", dense},
	{"a conflict names the head and changes nothing", conflict},
	{"a batch that no store takes changes nothing", badBatch},
	{"an append needs a log", appendNotFound},
	{"what comes out is what went in, byte for byte", verbatim},
	{"a header comes out as it went in", headerVerbatim},
	{"a cancelled call changes nothing", cancelled},

	{"a repeated key gives the first commit", keyRepeated},
	{"a key belongs to one digest", keyReused},
	{"a key of a failed append is free", keyOfFailure},
	{"a key belongs to one log", keyPerLog},
	{"a key may stand alone", keyAlone},
	{"the answer of a key is kept", keyAnswer},
	{"a creation may have a key", keyOfCreation},

	{"a group is committed in order", groupCommits},
	{"a group with one that is refused changes nothing", groupRefused},

	{"a read gives its range", readRange},
	{"a read gives its types", readTypes},
	{"a read by many types gives each event once", readManyTypes},
	{"pages join to the whole answer", readPages},
	{"a page is bounded without asking", readBounded},
	{"a query that no store takes is refused", readInvalid},
	{"a scan ends where the log did", scanEnds},
	{"a scan stays in one life", scanLife},
	{"a page outlives its log", pageLives},

	{"a tail gives every event once in order", tailWhole},
	{"a tail goes on from every position", tailResume},
	{"a tail gives its types", tailTypes},
	{"a tail passes deleted logs", tailDeleted},
	{"a tail waits at the end", tailEnd},
	{"a read knows the positions that a tail gives", readPositions},

	{"a list starts at the latest commit", listOrder},
	{"pages of a list join", listPages},
	{"a list that is paged while it changes repeats nothing", listChanges},

	{"a deleted log is gone", deleted},
	{"the same id again is another life", secondLife},
	{"a wrong incarnation is refused", wrongLife},
	{"a closed store says so", closed},

	{"one of many appenders wins each seq", raceOneLog},
	{"one of many appenders wins a key", raceKey},
	{"appenders to many logs do not meet", raceManyLogs},
	{"one of many creators wins an id", raceCreate},

	{"any history is that of the model", model},
}
