package session_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
)

// sink commits everything and keeps nothing but the length of its one log.
type sink struct {
	eventlog.Store
	seq int64
}

func (s *sink) Create(_ context.Context, c eventlog.Creation) (eventlog.Info, error) {
	return eventlog.Info{Header: c.Header, Incarnation: "i"}, nil
}

func (s *sink) Append(_ context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	c := eventlog.Commit{First: s.seq}
	s.seq += int64(len(b.Events))
	c.Seq = s.seq
	return c, nil
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Given a live session, when its log grows by a million events of which none stays on the surface, then nothing outside the store grows: not by a byte for
// every four events, and so not by anything per event.
func TestALiveSessionDoesNotGrowWithItsLog(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	s := create(t, newSet(t, &sink{}, quiet()), session.New{})
	round := func() {
		items := make([]session.Item, 0, 1000)
		for range 999 {
			items = append(items, session.Item{Type: "test/note", Data: []byte(`{"text":"x"}`)})
		}
		in := appended
		if nodes := state(t, s).Nodes; len(nodes) > 0 {
			in = session.Intent{Op: event.Replace(nodes[0], nodes[0]), Sources: nodes}
		}
		items = append(items, session.Item{Type: event.UserMessage, Data: []byte(userData("x")), Intent: in})
		if _, _, err := s.AppendBatch(context.Background(), session.Batch{Items: items}); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		round()
	}
	before := heap()
	for range rounds {
		round()
	}
	if grown := heap() - before; grown > int64(rounds)*1000/4 {
		t.Errorf("%d bytes more after %d events", grown, rounds*1000)
	}
	wantEqual(t, "events", state(t, s).AsOfSeq, int64(rounds+10)*1000-1)
}
