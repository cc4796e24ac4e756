package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/internal/corpus"
	"github.com/foldhost/foldhost/session"
)

// decoded reads a recorded log.
func decoded(t testing.TB, header []byte, lines [][]byte) (event.Header, []event.Draft) {
	t.Helper()
	h, err := event.DecodeHeader(header)
	if err != nil {
		t.Fatalf("header: %v", err)
	}
	list := make([]event.Draft, len(lines))
	for i, line := range lines {
		if list[i], err = event.DecodeDraft(line, 0); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return h, list
}

// Given a recorded log, when it is imported, then surface, messages, closers and forks are the recorded ones: from the core that imported it, and from
// one that opened it again over a store with short pages.
func TestCorpus(t *testing.T) {
	for _, l := range corpus.Logs(t) {
		t.Run(l.Name, func(t *testing.T) {
			h, list := decoded(t, l.Header, l.Events)
			ctx := context.Background()
			set := newSet(t, logtest.Short(memory.New(), 7), quiet())
			s, err := set.Import(ctx, h, each(list))
			if err != nil {
				t.Fatalf("importing: %v", err)
			}
			for _, when := range []string{"imported", "opened again"} {
				st := state(t, s)
				wantEqual(t, when+": nodes", st.Nodes, l.Surface.Nodes)
				wantEqual(t, when+": generation", st.ReplaceGeneration, l.Surface.ReplaceGeneration)
				wantEqual(t, when+": asOfSeq", st.AsOfSeq, l.AsOfSeq)
				checkMessages(t, s, &l)
				if err := s.Detach(ctx); err != nil {
					t.Fatalf("detaching: %v", err)
				}
			}
			checkClosers(t, list, &l)
			checkForks(t, set, s.ID(), &l)
			if n := int64(len(logOf(t, s))); n != l.Count {
				t.Errorf("the import has %d events, the log had %d", n, l.Count)
			}
		})
	}
}

func checkMessages(t *testing.T, s *session.Session, l *corpus.Log) {
	t.Helper()
	list := messages(t, s)
	wantEqual(t, "messages", int64(len(list)), l.Messages.Count)
	for i, want := range l.Messages.List {
		id, _ := event.String(event.Lookup(list[i], "id"))
		role, _ := event.String(event.Lookup(list[i], "role"))
		if id != want.ID || role != want.Role {
			t.Errorf("message %d is %s %s, want %s %s", i, role, id, want.Role, want.ID)
		}
	}
}

func events(list []event.Draft) []event.Event {
	out := make([]event.Event, len(list))
	for i := range list {
		out[i] = list[i].Event
	}
	return out
}

func closers(t testing.TB, log []event.Event) []event.Event {
	t.Helper()
	var last *event.Event
	if len(log) > 0 {
		last = &log[len(log)-1]
	}
	list, err := session.Closers(each(log), last)
	if err != nil {
		t.Fatalf("closers: %v", err)
	}
	return list
}

// closerNames are the types, with the error code for a tool/result.
func closerNames(list []event.Event) []string {
	var names []string
	for _, e := range list {
		name := e.Type
		if e.Type == event.ToolResult {
			code, _ := event.String(event.Lookup(e.Data, "error", "code"))
			name += ":" + code
		}
		names = append(names, name)
	}
	return names
}

func checkClosers(t *testing.T, list []event.Draft, l *corpus.Log) {
	t.Helper()
	log := events(list)
	all := closers(t, log)
	wantEqual(t, "closers", types(all), l.Closers)
	if len(all) != len(l.CloserEvents) {
		t.Fatalf("%d closers, want %d", len(all), len(l.CloserEvents))
	}
	for i := range all {
		if got := all[i].AppendJSON(nil); !event.Equal(got, l.CloserEvents[i]) {
			t.Errorf("closer %d is\n%s, want\n%s", i, got, l.CloserEvents[i])
		}
	}
	for _, run := range l.ClosersByPrefix {
		for n := run.From; n <= run.To; n++ {
			if got := closerNames(closers(t, log[:n])); !slices.Equal(got, run.Types) {
				t.Errorf("closers of the first %d events are %v, want %v", n, got, run.Types)
			}
		}
	}
}

// forkCodes maps the codes of the program that recorded the corpus to ours.
var forkCodes = map[string]session.ForkCode{
	"INVALID_BOUNDARY": session.ForkInvalidBoundary,
	"OPEN_TURN":        session.ForkOpenTurn,
}

func checkForks(t *testing.T, set *session.Set, id string, l *corpus.Log) {
	t.Helper()
	ctx := context.Background()
	for _, want := range l.Forks {
		var f session.Fork
		if string(want.Boundary) != `"omitted"` {
			var n int64
			err := json.Unmarshal(want.Boundary, &n)
			if err != nil {
				continue // 1.5 is no int64; a carrier refuses it before
			}
			f.Boundary = &n
		}
		child, err := set.Fork(ctx, id, f)
		if !want.OK {
			var refused *session.ForkError
			if !errors.As(err, &refused) || refused.Code != forkCodes[want.Code] {
				t.Errorf("fork at %s: got %v, want %s", want.Boundary, err, want.Code)
			}
			continue
		}
		if err != nil {
			t.Errorf("fork at %s: %v", want.Boundary, err)
			continue
		}
		log := logOf(t, child)
		wantEqual(t, "seedLength", *child.Header().SeedLength, want.SeedLength)
		wantEqual(t, "last type", log[len(log)-1].Type, want.LastType)
		wantEqual(t, "nodes", int64(len(state(t, child).Nodes)), want.Nodes)
		if err := set.Delete(ctx, child.ID()); err != nil {
			t.Fatalf("deleting the child: %v", err)
		}
	}
}

// Given an invalid log that decodes, when it is imported or seeded, then it is refused at the recorded event with the recorded code.
func TestCorpusInvalid(t *testing.T) {
	for _, l := range corpus.Invalid(t) {
		t.Run(l.File, func(t *testing.T) {
			h, err := event.DecodeHeader(l.Header)
			if err == nil {
				err = h.Check()
			}
			if err != nil {
				checkRefusal(t, &event.IndexError{Index: event.HeaderIndex, Err: err}, &l)
				return
			}
			set := newSet(t, memory.New(), quiet())
			lines := func(yield func(event.Draft, error) bool) {
				for i, line := range l.Events {
					d, err := event.DecodeDraft(line, 0)
					if err != nil {
						err = &event.IndexError{Index: int64(i), Err: err}
					}
					if !yield(d, err) {
						return
					}
				}
			}
			_, err = set.Import(context.Background(), h, lines)
			checkRefusal(t, err, &l)
			var seed []event.Draft
			for d, err := range lines {
				if err != nil {
					return // it cannot come as a seed
				}
				seed = append(seed, d)
			}
			_, err = set.Create(context.Background(), session.New{Seed: seed})
			checkRefusal(t, err, &l)
		})
	}
}

func checkRefusal(t *testing.T, err error, l *corpus.InvalidLog) {
	t.Helper()
	if l.Valid {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	wantCode(t, err, event.Code(l.Code))
	want := int64(event.HeaderIndex)
	if l.Index != nil {
		want = *l.Index
	}
	if at := wantErr[*event.IndexError](t, err); at != nil && at.Index != want {
		t.Errorf("refused at %d, want %d: %v", at.Index, want, err)
	}
}
