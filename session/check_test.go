package session_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// Given sessions that are as they should be, live, cold, empty and with replacements, then a check says nothing, and makes none of them live.
func TestCheckOfWholeSessions(t *testing.T) {
	store := newRowed()
	set := newSet(t, store, quiet())
	create(t, set, session.New{Header: event.Header{ID: "empty"}})
	cold := create(t, set, session.New{Header: event.Header{ID: "cold"}})
	long(t, cold, 120)
	goCold(t, cold)
	live := create(t, set, session.New{Header: event.Header{ID: "live"}})
	long(t, live, 120)
	goCold(t, live)
	appendAll(t, live, user("more"))
	for _, id := range []string{"empty", "cold", "live"} {
		if err := set.Check(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if cold.Live() || !live.Live() {
		t.Errorf("live are cold: %v, live: %v", cold.Live(), live.Live())
	}
	wantErr[*eventlog.NotFoundError](t, set.Check(t.Context(), "none"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantIs(t, set.Check(ctx, "cold"), context.Canceled)
}

// Given a stored surface that is whole and stands on the right event, and is still not what the log gives, then only a check tells, with the place.
func TestCheckOfAStoredSurfaceThatIsWrong(t *testing.T) {
	store := memory.New()
	o := quiet()
	o.Now = clock(7)
	set := newSet(t, store, o)
	other := create(t, set, session.New{Header: event.Header{ID: "other"}})
	appendAll(t, other, user("a"), user("b"), note("z"))
	goCold(t, other)
	s := create(t, set, session.New{Header: event.Header{ID: "s"}})
	appendAll(t, s, note("a"), user("b"), note("z"))
	goCold(t, s)
	appendAll(t, s, note("behind it"))
	rows, err := store.Rows(t.Context(), eventlog.Life{ID: "other"})
	if err != nil || len(rows.Rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if err := store.SaveRows(t.Context(), eventlog.Life{ID: "s"}, rows.Rows); err != nil {
		t.Fatal(err)
	}
	if e := wantErr[*eventlog.CorruptError](t, set.Check(t.Context(), "s")); e.ID != "s" || e.Seq != 2 {
		t.Errorf("%+v", e)
	}
}

// Given a log that no session would have accepted, then a check names the event.
func TestCheckOfALogThatBreaksARule(t *testing.T) {
	store := memory.New()
	set := newSet(t, store, quiet())
	_, err := store.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "s"}, Events: each([]event.Event{
		{Type: "note", Data: json.RawMessage(`1`)},
		{Type: event.UserMessage, Seq: 1, Data: json.RawMessage(userData("x")), Op: event.Replace(0, 0), Sources: []int64{0}},
	})})
	if err != nil {
		t.Fatal(err)
	}
	if e := wantErr[*eventlog.CorruptError](t, set.Check(t.Context(), "s")); e.Seq != 1 {
		t.Errorf("%+v", e)
	}
}
