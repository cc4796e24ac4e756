package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// rowed is a store with rows that counts what is read, and can be told to fail or change rows.
type rowed struct {
	*logtest.SlowStore
	*memory.Store

	mu sync.Mutex
	// change is called with each row that goes out; nil leaves it. fail is the answer of row calls.
	change func(*eventlog.Row)
	fail   error
	saved  int
}

func newRowed() *rowed {
	s := memory.New()
	return &rowed{SlowStore: logtest.Slow(s), Store: s}
}

// The logs go through the slow store, the rows to the one behind it.
func (r *rowed) Identity() eventlog.Identity { return r.SlowStore.Identity() }
func (r *rowed) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	return r.SlowStore.Create(ctx, c)
}
func (r *rowed) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	return r.SlowStore.Append(ctx, b)
}
func (r *rowed) Info(ctx context.Context, id string) (eventlog.Info, error) {
	return r.SlowStore.Info(ctx, id)
}
func (r *rowed) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	return r.SlowStore.List(ctx, q)
}
func (r *rowed) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	return r.SlowStore.Read(ctx, q)
}
func (r *rowed) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	return r.SlowStore.Tail(ctx, q)
}
func (r *rowed) Lookup(ctx context.Context, l eventlog.Life, key string) (eventlog.KeyRecord, bool, error) {
	return r.SlowStore.Lookup(ctx, l, key)
}
func (r *rowed) Delete(ctx context.Context, l eventlog.Life) error { return r.SlowStore.Delete(ctx, l) }
func (r *rowed) Close() error                                      { return r.SlowStore.Close() }

func (r *rowed) Rows(ctx context.Context, l eventlog.Life) (eventlog.RowSet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return eventlog.RowSet{}, r.fail
	}
	set, err := r.Store.Rows(ctx, l)
	for i := range set.Rows {
		if r.change != nil {
			set.Rows[i].Data = slices.Clone(set.Rows[i].Data)
			r.change(&set.Rows[i])
		}
	}
	return set, err
}

func (r *rowed) SaveRows(ctx context.Context, l eventlog.Life, rows []eventlog.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.saved++
	return r.Store.SaveRows(ctx, l, rows)
}

func (r *rowed) with(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func stateOf(t testing.TB, s *session.Session) string {
	t.Helper()
	st, err := s.Surface().State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(st)
}

func goCold(t testing.TB, s *session.Session) {
	t.Helper()
	if err := s.Detach(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// long is a log with replacements and much that does not touch the surface.
func long(t testing.TB, s *session.Session, n int) {
	for i := range n {
		seq := int64(2 * i)
		st := user(fmt.Sprint(i))
		if i%50 == 49 {
			st = st.replacing(seq-20, seq-10, func() (sources []int64) {
				for q := seq - 20; q <= seq-10; q += 2 {
					sources = append(sources, q)
				}
				return sources
			}()...)
		}
		appendAll(t, s, st, note("x"))
	}
}

// Given a session that has gone cold, when it is opened again, then the store is asked for the event that the row stands on and for what came after.
func TestOpeningCostsTheTail(t *testing.T) {
	store := newRowed()
	set := newSet(t, store, quiet())
	s := create(t, set, session.New{})
	long(t, s, 300)
	want := stateOf(t, s)
	goCold(t, s)
	store.Counts()
	if got := stateOf(t, s); got != want {
		t.Errorf("after going cold: %s, want %s", got, want)
	}
	if n := store.Counts().Read; n != 1 {
		t.Errorf("opening read %d events, want the one that the row stands on", n)
	}
	// What the row does not cover: another process, or a crash before the row was written.
	other := newSet(t, store, quiet())
	o, err := other.Open(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, o, user("more"), note("x"), user("and more"))
	want = stateOf(t, o)
	goCold(t, s)
	store.Counts()
	if got := stateOf(t, s); got != want {
		t.Errorf("with a tail: %s, want %s", got, want)
	}
	if n := store.Counts().Read; n > 4 {
		t.Errorf("opening read %d events, want the anchor and three", n)
	}
	// A session that nothing has happened to writes nothing.
	goCold(t, s)
	stateOf(t, s)
	saved := store.saved
	goCold(t, s)
	if store.saved != saved {
		t.Error("a row was written though nothing had changed")
	}
}

// Given a row that is damaged in any byte, or says what no log can lead to, then the surface is folded from the log.
func TestADoubtfulSurfaceRowIsFoldedAgain(t *testing.T) {
	store := newRowed()
	set := newSet(t, store, quiet())
	s := create(t, set, session.New{})
	long(t, s, 60)
	want := stateOf(t, s)
	goCold(t, s)
	rows, err := store.Rows(context.Background(), eventlog.Life{ID: s.ID()})
	if err != nil || len(rows.Rows) != 1 {
		t.Fatalf("rows: %v, %v", rows, err)
	}
	for i := range rows.Rows[0].Data {
		store.with(func() { store.change = func(r *eventlog.Row) { r.Data[i] ^= 0x55 } })
		if got := stateOf(t, s); got != want {
			t.Fatalf("with byte %d changed: %s, want %s", i, got, want)
		}
		store.with(func() { store.change = nil })
		goCold(t, s)
	}
	for name, change := range map[string]func(*eventlog.Row){
		"cut off":   func(r *eventlog.Row) { r.Data = r.Data[:len(r.Data)-1] },
		"longer":    func(r *eventlog.Row) { r.Data = append(r.Data, 0) },
		"empty":     func(r *eventlog.Row) { r.Data = nil },
		"seq":       func(r *eventlog.Row) { r.Seq-- },
		"of others": func(r *eventlog.Row) { r.Data = []byte(`{"ver":1}`) },
	} {
		store.with(func() { store.change = change })
		if got := stateOf(t, s); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		store.with(func() { store.change = nil })
		goCold(t, s)
	}
	store.with(func() { store.fail = errors.New("the disk is gone") })
	if got := stateOf(t, s); got != want {
		t.Errorf("without rows: %s, want %s", got, want)
	}
	appendAll(t, s, user("goes on"))
	goCold(t, s)
	store.with(func() { store.fail = nil })
	appendAll(t, s, user("and on"))
}

// Given a session that stays live, then its row is written every thousand changes, beside the appends.
func TestALongLiveSessionStoresItsSurface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newRowed()
		set := newSet(t, store, quiet())
		s := create(t, set, session.New{})
		long(t, s, 999)
		synctest.Wait()
		if store.saved != 0 {
			t.Errorf("%d rows after 999 changes", store.saved)
		}
		appendAll(t, s, user("the thousandth"))
		synctest.Wait()
		if store.saved != 1 {
			t.Errorf("%d rows after 1,000 changes, want 1", store.saved)
		}
	})
}

// Given a row that could not be stored, when the session goes cold with nothing new, then the row is stored after all.
func TestASurfaceThatWasNotStoredIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newRowed()
		set := newSet(t, store, quiet())
		s := create(t, set, session.New{})
		store.with(func() { store.fail = errors.New("not now") })
		long(t, s, 1000)
		synctest.Wait()
		store.with(func() { store.fail = nil })
		goCold(t, s)
		if store.saved != 1 {
			t.Errorf("%d rows were stored, want 1", store.saved)
		}
	})
}

// The surface after going cold at any moments is that of a session that never does.
func TestGoingColdChangesNoSurface(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		colds, warms := session.NewSet(memory.New(), quiet()), session.NewSet(memory.New(), quiet())
		defer colds.Close()
		defer warms.Close()
		cold, warm := create(t, colds, session.New{}), create(t, warms, session.New{})
		for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			st := note("x")
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0, 1:
				st = user(fmt.Sprint(i))
			case 2:
				state, err := warm.Surface().State(context.Background())
				if err != nil {
					rt.Fatal(err)
				}
				if n := len(state.Nodes); n > 0 {
					from := rapid.IntRange(0, n-1).Draw(rt, "from")
					to := rapid.IntRange(from, n-1).Draw(rt, "to")
					st = user(fmt.Sprint(i)).replacing(state.Nodes[from], state.Nodes[to], state.Nodes[from:to+1]...)
				}
			}
			appendAll(t, cold, st)
			appendAll(t, warm, st)
			if rapid.Bool().Draw(rt, "goes cold") {
				goCold(t, cold)
			}
		}
		if got, want := stateOf(t, cold), stateOf(t, warm); got != want {
			rt.Fatalf("cold: %s\nwarm: %s", got, want)
		}
	})
}

// Given more live sessions than there may be, then those that are not in use go cold, those that were not touched for longest first.
func TestTooManyLiveSessionsGoCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.IdleAfter, o.MaxLive = time.Hour, 16
		set := newSet(t, newRowed(), o)
		var all []*session.Session
		add := func(n int) {
			for range n {
				s := create(t, set, session.New{})
				appendAll(t, s, user("hi"))
				all = append(all, s)
			}
			synctest.Wait()
		}
		live := func() (n int) {
			for _, s := range all {
				if s.Live() {
					n++
				}
			}
			return n
		}
		add(8)
		release, err := all[0].Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Minute) // two ticks and more: these are the ones that nobody touched
		add(8)
		if n := live(); n != 16 {
			t.Errorf("%d are live, want all 16", n)
		}
		add(1)
		if n := live(); n > 16 || !all[16].Live() || !all[0].Live() {
			t.Errorf("%d are live; the newest %v, the one held %v", n, all[16].Live(), all[0].Live())
		}
		for i, s := range all[8:] {
			if !s.Live() {
				t.Errorf("session %d went cold, and others were not touched for longer", i+8)
			}
		}
		release()
		add(100)
		if n := live(); n > 16 {
			t.Errorf("%d are live", n)
		}
		for _, s := range all {
			appendAll(t, s, user("still there"))
		}
	})
}
