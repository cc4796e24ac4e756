package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
)

// leaving is a store whose caller leaves at the n-th call from now on.
type leaving struct {
	eventlog.Store
	n     atomic.Int64
	leave context.CancelFunc
}

func (l *leaving) count() {
	if l.n.Add(-1) == 0 {
		l.leave()
	}
}

func (l *leaving) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	l.count()
	return l.Store.Create(ctx, c)
}

func (l *leaving) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	l.count()
	return l.Store.Append(ctx, b)
}

func (l *leaving) Info(ctx context.Context, id string) (eventlog.Info, error) {
	l.count()
	return l.Store.Info(ctx, id)
}

func (l *leaving) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	l.count()
	return l.Store.Read(ctx, q)
}

func (l *leaving) Lookup(ctx context.Context, life eventlog.Life, key string) (eventlog.KeyRecord, bool, error) {
	l.count()
	return l.Store.Lookup(ctx, life, key)
}

func (l *leaving) Delete(ctx context.Context, life eventlog.Life) error {
	l.count()
	return l.Store.Delete(ctx, life)
}

// Given any call on a cold or a live session, when its context ends at any of the calls that it makes to the store, then it gives the context's error and has changed nothing, or
// it has done all; the next caller finds a session that is what its log says.
func TestAContextThatEndsAnywhere(t *testing.T) {
	log := []step{turnStart(1), user("a"), assistant("b", "c"), toolCall("c"), toolResult("c", "long"), user("d"), turnEnd(1), note("x"), turnStart(2), stepStart(2, 1)}
	calls := map[string]func(ctx context.Context, set *session.Set, s *session.Session) error{
		"open": func(ctx context.Context, set *session.Set, _ *session.Session) error {
			_, err := set.Open(ctx, "s")
			return err
		},
		"append": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, err := s.Append(ctx, "x", 1, session.Intent{})
			return err
		},
		"state": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, err := s.Surface().State(ctx)
			return err
		},
		"messages": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, err := s.Messages(ctx)
			return err
		},
		"recover": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, err := s.Recover(ctx)
			return err
		},
		"detach": func(ctx context.Context, _ *session.Set, s *session.Session) error { return s.Detach(ctx) },
		"delete": func(ctx context.Context, set *session.Set, _ *session.Session) error { return set.Delete(ctx, "s") },
		"batch": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, _, err := s.AppendBatch(ctx, session.Batch{Items: items(note("y"), toolResult("c", "short").replacing(4, 4, 4)), Key: "k", Digest: "d"})
			return err
		},
		"compact": func(ctx context.Context, _ *session.Set, s *session.Session) error {
			_, err := s.Compact(ctx, 1, 4, json.RawMessage(userData("summary")))
			return err
		},
		"create": func(ctx context.Context, set *session.Set, _ *session.Session) error {
			_, err := set.Create(ctx, session.New{Header: event.Header{ID: "new"}, Seed: drafts(log...)})
			return err
		},
		"fork": func(ctx context.Context, set *session.Set, _ *session.Session) error {
			_, err := set.Fork(ctx, "s", session.Fork{Child: "new", Boundary: at(7)})
			return err
		},
		"fork by turns": func(ctx context.Context, set *session.Set, _ *session.Session) error {
			_, err := set.ForkTurn(ctx, "s", session.TurnFork{Child: "new", AtSeq: at(3)})
			return err
		},
	}
	for name, call := range calls {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s cold=%v", name, cold), func(t *testing.T) {
				left := true
				for n := int64(0); left; n++ { // n is the call at which it ends; 0 is before all
					store := &leaving{Store: logtest.Short(memory.New(), 3)}
					o, l := driven(t)
					set := session.NewSet(store, o)
					s := create(t, set, session.New{Header: event.Header{ID: "s"}})
					appendAll(t, s, log...)
					before := logOf(t, s)
					if cold {
						if err := s.Detach(context.Background()); err != nil {
							t.Fatal(err)
						}
					}
					ctx, cancel := context.WithCancel(context.Background())
					store.leave = cancel
					store.n.Store(n)
					if n == 0 {
						cancel()
					}
					err := call(ctx, set, s)
					left = ctx.Err() != nil
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) || err != nil && !left {
						t.Errorf("left at call %d: %v", n, err)
					}
					checkUndone(t, set, before, err != nil)
					if head, ok := l.head("s"); ok && head != int64(len(logOf(t, s)))-1 {
						t.Errorf("left at call %d: the drive is at %d", n, head)
					}
					if err := set.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// checkUndone wants a set as it was before a call when that failed, and a sound one in any case.
func checkUndone(t *testing.T, set *session.Set, before []event.Event, failed bool) {
	t.Helper()
	ctx := context.Background()
	if _, err := set.Open(ctx, "new"); failed {
		wantErr[*eventlog.NotFoundError](t, err)
	}
	s, err := set.Open(ctx, "s")
	if err != nil {
		if failed {
			t.Errorf("gone after a failure: %v", err)
		}
		return
	}
	log := logOf(t, s)
	if failed {
		wantEqual(t, "log", types(log), types(before))
	}
	folded, err := surface.Fold(undrafts(log))
	if err != nil {
		t.Fatal(err)
	}
	if got := state(t, s); !slices.Equal(got.Nodes, folded.Nodes) || got.AsOfSeq != int64(len(log))-1 {
		t.Errorf("the surface is %+v, the log says %v", got, folded.Nodes)
	}
}
