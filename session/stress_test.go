package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
)

// rounds can be raised to look for rare interleavings: go test -race -run Storm ./session -rounds 100000
var rounds = flag.Int("rounds", 150, "how much each worker of the storm does")

var errStorm = errors.New("the store had a bad day")

// moody is a store whose calls dawdle, fail before they do anything, or fail after they have done it.
type moody struct {
	eventlog.Store
	calm atomic.Bool
	// groups counts commits of several appends.
	groups atomic.Int64
}

// mood says what becomes of a call.
func (m *moody) mood(ctx context.Context) (before, after error) {
	if m.calm.Load() {
		return nil, nil
	}
	for range rand.IntN(4) {
		runtime.Gosched()
	}
	if err := ctx.Err(); err != nil {
		return err, nil
	}
	switch rand.IntN(40) {
	case 0:
		return fmt.Errorf("before: %w", errStorm), nil
	case 1:
		return nil, fmt.Errorf("after: %w", errStorm)
	}
	return nil, nil
}

func inMood[T any](ctx context.Context, m *moody, call func() (T, error)) (T, error) {
	var none T
	before, after := m.mood(ctx)
	if before != nil {
		return none, before
	}
	v, err := call()
	if after != nil {
		return none, after
	}
	return v, err
}

func (m *moody) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	return inMood(ctx, m, func() (eventlog.Info, error) { return m.Store.Create(ctx, c) })
}

func (m *moody) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	return inMood(ctx, m, func() (eventlog.Commit, error) { return m.Store.Append(ctx, b) })
}

func (m *moody) AppendGroup(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Commit, error) {
	m.groups.Add(1)
	return inMood(ctx, m, func() ([]eventlog.Commit, error) { return m.Store.(eventlog.Grouper).AppendGroup(ctx, batches) })
}

func (m *moody) Info(ctx context.Context, id string) (eventlog.Info, error) {
	return inMood(ctx, m, func() (eventlog.Info, error) { return m.Store.Info(ctx, id) })
}

func (m *moody) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	q.Limit = 1 + rand.IntN(50)
	return inMood(ctx, m, func() (eventlog.Page, error) { return m.Store.Read(ctx, q) })
}

func (m *moody) Delete(ctx context.Context, l eventlog.Life) error {
	_, err := inMood(ctx, m, func() (struct{}, error) { return struct{}{}, m.Store.Delete(ctx, l) })
	return err
}

// storm is many workers on few sessions, and what was acknowledged to them.
type storm struct {
	t     *testing.T
	store *moody
	set   *session.Set
	// closing says that the set may be closed by now.
	closing atomic.Bool

	mu    sync.Mutex
	acked map[string][]event.Event // by incarnation
	heard map[string]int64         // the last seq that observers heard, by incarnation
	keys  int
}

// tolerable is what a call may end with when the store is moody and others delete, detach and create.
func (st *storm) tolerable(what string, err error) bool {
	var gone *eventlog.NotFoundError
	var exists *eventlog.ExistsError
	var fork *session.ForkError
	var veto *session.VetoError
	var rule *event.Error
	ok := err == nil || errors.Is(err, errStorm) || errors.Is(err, session.ErrClosed) && st.closing.Load() || errors.Is(err, context.Canceled) || errors.As(err, &gone) || errors.As(err, &exists) ||
		errors.As(err, &fork) || errors.As(err, &veto) || errors.As(err, &rule) && (rule.Code == event.SurfaceRangeInvalid || rule.Code == event.SourcesIncomplete)
	if !ok {
		st.t.Errorf("%s: %v", what, err)
	}
	return err == nil
}

func (st *storm) ack(s *session.Session, events ...event.Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.acked[s.Incarnation()] = append(st.acked[s.Incarnation()], events...)
}

// observe checks that nothing is heard twice or out of order, and misbehaves.
func (st *storm) observe(ctx context.Context, s *session.Session, events []event.Event) {
	st.mu.Lock()
	for _, ev := range events {
		last, any := st.heard[s.Incarnation()]
		if any && ev.Seq <= last {
			st.t.Errorf("session %s: seq %d heard after %d", s.ID(), ev.Seq, last)
		}
		st.heard[s.Incarnation()] = ev.Seq
	}
	st.mu.Unlock()
	switch rand.IntN(30) {
	case 0:
		panic("an observer fails")
	case 1:
		if _, err := s.Append(ctx, "x", 1, session.Intent{}); !errors.Is(err, session.ErrReentrant) {
			st.t.Errorf("append from an observer: %v", err)
		}
	case 2:
		for range 20 {
			runtime.Gosched()
		}
	}
}

// request appends a batch under a key until the store says what became of it.
func (st *storm) request(ctx context.Context, s *session.Session) {
	st.mu.Lock()
	st.keys++
	key := fmt.Sprint("key-", st.keys)
	st.mu.Unlock()
	b := session.Batch{Items: items(note(key), user(key), note(key)), Once: session.Once{Key: key, Digest: key}}
	for {
		commit, events, err := s.AppendBatch(ctx, b)
		if st.tolerable("request", err) {
			if len(events) != 3 || commit.Seq-commit.First != 3 || string(events[0].Data) != fmt.Sprintf(`{"text":%q}`, key) {
				st.t.Errorf("request %s: %+v", key, commit)
			}
			st.ack(s, events...)
		}
		if !errors.Is(err, errStorm) {
			return
		}
	}
}

func (st *storm) work(ctx context.Context, id string) {
	s, err := st.set.Open(ctx, id)
	if !st.tolerable("open", err) {
		s, err = st.set.Create(ctx, session.New{Header: event.Header{ID: id}})
		if !st.tolerable("create", err) {
			return
		}
	}
	for range 1 + rand.IntN(6) {
		switch rand.IntN(20) {
		default:
			ev, err := s.Append(ctx, event.UserMessage, json.RawMessage(userData("x")), appended)
			if st.tolerable("append", err) {
				st.ack(s, ev)
				page, err := s.Read(ctx, ev.Seq, ev.Seq+1, nil)
				if st.tolerable("read", err) && len(page.Events) != 1 {
					st.t.Errorf("session %s: seq %d was acknowledged and is not there", id, ev.Seq)
				}
			}
		case 0, 1:
			st.request(ctx, s)
		case 2, 3:
			look, err := s.Surface().State(ctx)
			if st.tolerable("state", err) && len(look.Nodes) > 2 {
				i := rand.IntN(len(look.Nodes) - 1)
				ev, err := s.Compact(ctx, look.Nodes[i], look.Nodes[i+1], json.RawMessage(userData("c")))
				if st.tolerable("compact", err) {
					st.ack(s, ev)
				}
			}
		case 4, 5:
			_, err := s.Messages(ctx)
			st.tolerable("messages", err)
		case 6:
			st.tolerable("detach", s.Detach(ctx))
		case 7:
			child, err := st.set.Fork(ctx, id, session.Fork{})
			if st.tolerable("fork", err) {
				st.tolerable("delete a child", st.set.Delete(ctx, child.ID()))
			}
		case 8:
			if rand.IntN(4) == 0 {
				st.tolerable("delete", st.set.Delete(ctx, id))
			}
		case 9:
			release, err := s.Hold(ctx)
			if st.tolerable("hold", err) {
				runtime.Gosched()
				release()
			}
		case 10:
			_, err := s.Recover(ctx)
			st.tolerable("recover", err)
		}
	}
}

// settled checks one session that nobody works on any more, over a store that has calmed down.
func (st *storm) settled(id string) {
	t, ctx := st.t, context.Background()
	s, err := st.set.Open(ctx, id)
	var gone *eventlog.NotFoundError
	if errors.As(err, &gone) {
		return
	}
	if err != nil {
		t.Errorf("open %s: %v", id, err)
		return
	}
	log := logOf(t, s)
	for _, ev := range st.acked[s.Incarnation()] {
		if ev.Seq >= int64(len(log)) || !bytes.Equal(log[ev.Seq].AppendJSON(nil), ev.AppendJSON(nil)) {
			t.Errorf("session %s: seq %d was acknowledged and is not there", id, ev.Seq)
		}
	}
	once := map[string]bool{}
	for _, ev := range log {
		if text, _ := event.String(event.Lookup(ev.Data, "id")); ev.Type == event.UserMessage && len(text) > 6 {
			if once[text] {
				t.Errorf("session %s: the request of %s was carried out twice", id, text)
			}
			once[text] = true
		}
	}
	folded, err := surface.Fold(undrafts(log))
	if err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	for _, seq := range folded.Nodes {
		want = append(want, event.MessageOf(&log[seq]))
	}
	wantEqual(t, "nodes", state(t, s).Nodes, folded.Nodes)
	if !slices.EqualFunc(raws(messages(t, s)), want, bytes.Equal) {
		t.Errorf("session %s: the messages are not those of its log", id)
	}
}

// Given workers that append, compact, fork, delete, create, detach and hold a few sessions at random, with contexts that end at random, a store that fails
// before and after it commits, a janitor that never rests, observers that panic, append and dawdle, a drive that panics now and then, and a set that closes in the end, then
// every drive and every observer hears of each event once and in order, what was acknowledged is in its log, a request is carried out once, each session is what its log
// says, and nothing is left over.
func TestStorm(t *testing.T) {
	t.Run("hooks", func(t *testing.T) { testStorm(t, (*session.Set).AddHook) })
	t.Run("guards", func(t *testing.T) {
		if groups := testStorm(t, (*session.Set).AddGuard); groups == 0 {
			t.Error("no appends shared a commit")
		}
	})
}

func testStorm(t *testing.T, add func(*session.Set, session.Hook) func()) (groups int64) {
	o, l := driven(t)
	o.IdleAfter = time.Nanosecond // a tick each millisecond
	st := &storm{t: t, store: &moody{Store: memory.New()}, acked: map[string][]event.Event{}, heard: map[string]int64{}}
	st.set = session.NewSet(st.store, o)
	st.set.AddObserver(st.observe)
	add(st.set, func(context.Context, *session.Session, []event.Event) error {
		if rand.IntN(50) == 0 {
			return errors.New("not this one")
		}
		return nil
	})
	ids := []string{"a", "b", "c"}
	blow := func(rounds int) *sync.WaitGroup {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range rounds {
					ctx, cancel := context.WithCancel(context.Background())
					if rand.IntN(4) == 0 {
						all.Go(func() {
							for range rand.IntN(50) {
								runtime.Gosched()
							}
							cancel()
						})
					}
					if rand.IntN(20) == 0 {
						l.failAt(int64(rand.IntN(40)))
					}
					st.work(ctx, ids[rand.IntN(len(ids))])
					cancel()
				}
			})
		}
		return &all
	}
	blow(*rounds).Wait()
	st.store.calm.Store(true)
	for _, id := range ids {
		st.settled(id)
	}

	st.store.calm.Store(false)
	st.closing.Store(true)
	last := blow(10)
	if err := st.set.Close(); err != nil {
		t.Error(err)
	}
	last.Wait()
	if _, err := st.set.Open(context.Background(), "a"); !errors.Is(err, session.ErrClosed) {
		t.Errorf("open of a closed set: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.attached) != 0 {
		t.Errorf("%d drives still attached", len(l.attached))
	}
	return st.store.groups.Load()
}
