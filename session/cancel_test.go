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

// troubled is a store in which something happens at the n-th call from now on: it is told of, and fails with what trouble gives.
type troubled struct {
	eventlog.Store
	n       atomic.Int64
	trouble func() error
}

func (l *troubled) count() error {
	if l.n.Add(-1) == 0 {
		return l.trouble()
	}
	return nil
}

func (l *troubled) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	if err := l.count(); err != nil {
		return eventlog.Info{}, err
	}
	return l.Store.Create(ctx, c)
}

func (l *troubled) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	if err := l.count(); err != nil {
		return eventlog.Commit{}, err
	}
	return l.Store.Append(ctx, b)
}

func (l *troubled) Info(ctx context.Context, id string) (eventlog.Info, error) {
	if err := l.count(); err != nil {
		return eventlog.Info{}, err
	}
	return l.Store.Info(ctx, id)
}

func (l *troubled) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if err := l.count(); err != nil {
		return eventlog.Page{}, err
	}
	return l.Store.Read(ctx, q)
}

func (l *troubled) Lookup(ctx context.Context, life eventlog.Life, key string) (eventlog.KeyRecord, bool, error) {
	if err := l.count(); err != nil {
		return eventlog.KeyRecord{}, false, err
	}
	return l.Store.Lookup(ctx, life, key)
}

func (l *troubled) Delete(ctx context.Context, life eventlog.Life) error {
	if err := l.count(); err != nil {
		return err
	}
	return l.Store.Delete(ctx, life)
}

// busy is a log with a turn that has ended, a call and its result, and a turn that has not ended.
var busy = []step{turnStart(1), user("a"), assistant("b", "c"), toolCall("c"), toolResult("c", "long"), user("d"), turnEnd(1), note("x"), turnStart(2), stepStart(2, 1)}

// calls are those that go to the store, on a session s with a busy log.
var calls = map[string]func(ctx context.Context, set *session.Set, s *session.Session) error{
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
		_, _, err := s.AppendBatch(ctx, session.Batch{Items: items(note("y"), toolResult("c", "short").replacing(4, 4, 4)), Once: session.Once{Key: "k", Digest: "d"}})
		return err
	},
	"compact": func(ctx context.Context, _ *session.Set, s *session.Session) error {
		_, err := s.Compact(ctx, 1, 4, json.RawMessage(userData("summary")))
		return err
	},
	"create": func(ctx context.Context, set *session.Set, _ *session.Session) error {
		_, err := set.Create(ctx, session.New{Header: event.Header{ID: "new"}, Seed: drafts(busy...)})
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

// inTrouble makes each call, on a cold and on a live session, with trouble at each of the calls that it makes to the store, until one comes through without. trouble
// gets the context's end; 0 is before all calls. check is given what came of it, and says whether trouble was met.
func inTrouble(t *testing.T, trouble func(leave context.CancelFunc) error, check func(t *testing.T, ctx context.Context, n int64, err error) (met bool)) {
	for name, call := range calls {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s cold=%v", name, cold), func(t *testing.T) {
				met := true
				for n := int64(0); met; n++ {
					ctx, cancel := context.WithCancel(context.Background())
					store := &troubled{Store: logtest.Short(memory.New(), 3), trouble: func() error { return trouble(cancel) }}
					o, l := driven(t)
					set := session.NewSet(store, o)
					s := create(t, set, session.New{Header: event.Header{ID: "s"}})
					appendAll(t, s, busy...)
					before := logOf(t, s)
					if cold {
						if err := s.Detach(context.Background()); err != nil {
							t.Fatal(err)
						}
					}
					store.n.Store(n)
					if n == 0 {
						_ = trouble(cancel) // nobody asks for it
					}
					err := call(ctx, set, s)
					met = check(t, ctx, n, err) || n == 0
					cancel()
					store.n.Store(0) // what comes now has no trouble
					checkUndone(t, set, before, err != nil)
					if head, ok := l.head("s"); ok && head != int64(len(logOf(t, s)))-1 {
						t.Errorf("trouble at call %d: the drive is at %d", n, head)
					}
					if err := set.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// Given any call, when its context ends at any of the calls that it makes to the store, then it gives the context's error and has changed nothing, or it has done
// all; the next caller finds a session that is what its log says.
func TestAContextThatEndsAnywhere(t *testing.T) {
	inTrouble(t, func(leave context.CancelFunc) error {
		leave()
		return nil
	}, func(t *testing.T, ctx context.Context, n int64, err error) bool {
		left := ctx.Err() != nil
		if err != nil && !errors.Is(err, context.Canceled) || err != nil && !left {
			t.Errorf("left at call %d: %v", n, err)
		}
		return left
	})
}

// Given any call, when any of the calls that it makes to the store fails, then it gives the store's error and has changed nothing; the next caller finds a session
// that is what its log says.
func TestAStoreThatFailsAnywhere(t *testing.T) {
	failed := false
	inTrouble(t, func(context.CancelFunc) error {
		failed = true
		return errBroken
	}, func(t *testing.T, _ context.Context, n int64, err error) bool {
		was := failed && n > 0
		if failed = false; was != errors.Is(err, errBroken) {
			t.Errorf("failed at call %d: %v", n, err)
		}
		return was
	})
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
