package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// frail is a driver whose drives panic at everything, and which panics itself at a session that has nothing in it.
type frail struct{}

func (frail) Attach(_ *session.Session, head int64) session.Drive {
	if head < 0 {
		panic("attach")
	}
	return frail{}
}
func (frail) Publish(context.Context, []event.Event) { panic("publish") }
func (frail) Detach(bool)                            { panic("detach") }

// Given an observer and a drive that panic, then each panic is logged with the session, whose code it was, what it said and where.
func TestContainedPanicsAreLogged(t *testing.T) {
	var log bytes.Buffer
	o := session.Options{IdleAfter: -1, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Driver: frail{}}
	set := newSet(t, memory.New(), o)
	set.AddObserver(func(context.Context, *session.Session, []event.Event) { panic("observe") })
	create(t, set, session.New{Header: event.Header{ID: "s"}})
	if err := set.Delete(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
	appendAll(t, create(t, set, session.New{Header: event.Header{ID: "s"}, Seed: []event.Draft{}}), note("x"))
	var got []string
	for line := range bytes.Lines(log.Bytes()) {
		var entry struct{ Level, Session, In, Panic, Stack string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Level != "ERROR" || entry.Session != "s" || !bytes.Contains([]byte(entry.Stack), []byte("contain_test.go")) {
			t.Errorf("logged %s", line)
		}
		got = append(got, entry.In+" "+entry.Panic)
	}
	wantEqual(t, "panics", got, []string{"driver attach", "drive publish", "observer observe", "drive detach"})
}
