package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// ledger is a driver that checks what every driver may rely on: one drive of an id at a time, every event once, in order, from the head on, nothing after Detach.
type ledger struct {
	t        testing.TB
	mu       sync.Mutex
	attached map[string]*entry
	attaches int
	deletes  int
	// panicAt makes Publish panic at that seq, once.
	panicAt int64
}

type entry struct {
	l    *ledger
	id   string
	head int64
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, attached: map[string]*entry{}, panicAt: -1}
}

func (l *ledger) Attach(s *session.Session, head int64) session.Drive {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attached[s.ID()] != nil {
		l.t.Errorf("session %s attached twice at once", s.ID())
	}
	l.attaches++
	l.attached[s.ID()] = &entry{l, s.ID(), head}
	return l.attached[s.ID()]
}

func (e *entry) Publish(_ context.Context, events []event.Event) {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if e.l.attached[e.id] != e {
		e.l.t.Errorf("session %s publishes to a drive that was detached", e.id)
	}
	for _, ev := range events {
		if ev.Seq != e.head+1 {
			e.l.t.Errorf("session %s published seq %d after %d", e.id, ev.Seq, e.head)
		}
		e.head = ev.Seq
		if ev.Seq == e.l.panicAt {
			e.l.panicAt = -1
			panic("the drive fails")
		}
	}
}

func (e *entry) Detach(deleted bool) {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if e.l.attached[e.id] != e {
		e.l.t.Errorf("session %s detached twice", e.id)
	}
	delete(e.l.attached, e.id)
	if deleted {
		e.l.deletes++
	}
}

func (l *ledger) failAt(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.panicAt = seq
}

// head is what the drive of a session has seen; ok is false when none is attached.
func (l *ledger) head(id string) (head int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.attached[id]
	if e == nil {
		return 0, false
	}
	return e.head, true
}

func driven(t testing.TB) (session.Options, *ledger) {
	o, l := quiet(), newLedger(t)
	o.Driver = l
	return o, l
}

// Given a session, when it goes cold by itself or on command, then nobody can tell: the same handle goes on, with the same surface object.
func TestGoingColdIsInvisible(t *testing.T) {
	o, l := driven(t)
	set := newSet(t, memory.New(), o)
	ctx := context.Background()
	s := create(t, set, session.New{})
	face := s.Surface()
	for i := range int64(3) {
		appendAll(t, s, user("a"))
		wantEqual(t, "nodes", len(state(t, s).Nodes), int(i)+1)
		wantEqual(t, "messages", len(messages(t, s)), int(i)+1)
		if err := s.Detach(ctx); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.head(s.ID()); ok || s.Live() {
			t.Error("detached, and live")
		}
		if err := s.Detach(ctx); err != nil {
			t.Errorf("detaching a cold session: %v", err)
		}
	}
	if s.Surface() != face {
		t.Error("the surface is another object")
	}
	again, err := set.Open(ctx, s.ID())
	if err != nil || again.Incarnation() != s.Incarnation() || !s.Live() {
		t.Errorf("opened %+v, %v", again, err)
	}
	if head, _ := l.head(s.ID()); head != 2 {
		t.Errorf("attached at head %d, want 2", head)
	}
}

// Given an idle time, when a session is not touched for it, then it goes cold, and not before; a hold and a touch in progress keep it.
func TestIdleSessionsGoCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := driven(t)
		o.IdleAfter = time.Minute
		set := newSet(t, memory.New(), o)
		ctx := context.Background()
		s := create(t, set, session.New{})
		for range 5 { // touches keep it
			time.Sleep(40 * time.Second)
			synctest.Wait()
			if !s.Live() {
				t.Fatal("cold though it was touched")
			}
			appendAll(t, s, note("x"))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := l.head(s.ID()); ok || s.Live() {
			t.Fatal("live though nobody touched it")
		}
		release, err := s.Hold(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if !s.Live() {
			t.Fatal("cold though it was held")
		}
		release()
		release()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s.Live() {
			t.Fatal("live after the release")
		}
		set.Close()
	})
}

// Given an append that the store keeps waiting, when the idle time passes, then the session stays: eviction never meets a touch.
func TestEvictionWaitsForAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := driven(t)
		o.IdleAfter = time.Minute
		store := logtest.Slow(memory.New())
		set := newSet(t, store, o)
		s := create(t, set, session.New{})
		gate := store.Hold(logtest.Append)
		done := make(chan error)
		go func() { _, err := appendStep(s, note("slow")); done <- err }()
		<-gate.Arrived()
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, ok := l.head(s.ID()); !ok {
			t.Error("evicted in the middle of an append")
		}
		gate.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if !s.Live() {
			t.Error("idle time counts from the end of a touch, not from its beginning")
		}
		set.Close()
	})
}

// Given appends in the queue behind one that the store keeps waiting, then a context that ends takes its append out and no other.
func TestQueuedAppendsHonourTheirContexts(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	gate := store.Hold(logtest.Append)
	first := make(chan error)
	go func() { _, err := appendStep(s, note("first")); first <- err }()
	<-gate.Arrived()
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error)
	go func() { _, err := s.Append(ctx, "second", 1, session.Intent{}); second <- err }()
	cancel()
	wantIs(t, <-second, context.Canceled)
	state(t, s) // a reader does not wait for the append
	gate.Release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	wantEqual(t, "log", types(logOf(t, s)), []string{"test/note"})
}

// Given a handle, when its session is deleted, then every call of it gives not-found, also after the id was created again.
func TestDeletedLives(t *testing.T) {
	o, l := driven(t)
	var told []string
	o.Deleted = func(id string) { told = append(told, fmt.Sprint(id, " ", l.deletes)) }
	set := newSet(t, memory.New(), o)
	ctx := context.Background()
	for _, cold := range []bool{false, true} {
		old := create(t, set, session.New{Header: event.Header{ID: "s"}})
		appendAll(t, old, user("a"))
		if cold {
			if err := old.Detach(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.Delete(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		checkDead(t, old)
		_, err := set.Open(ctx, "s")
		wantErr[*eventlog.NotFoundError](t, err)
		wantErr[*eventlog.NotFoundError](t, set.Delete(ctx, "s"))

		next := create(t, set, session.New{Header: event.Header{ID: "s"}})
		checkDead(t, old)
		if next.Incarnation() == old.Incarnation() {
			t.Error("two lives, one incarnation")
		}
		wantEqual(t, "log of the new life", logOf(t, next), nil)
		appendAll(t, next, note("x"))
		if err := set.Delete(ctx, "s"); err != nil {
			t.Fatal(err)
		}
	}
	wantEqual(t, "drives that were told of a deletion", l.deletes, 3)
	// Before and after each, the third and sixth of which found nothing; cold the fourth.
	wantEqual(t, "who counts lives is told", told, []string{"s 0", "s 1", "s 1", "s 1", "s 1", "s 2", "s 2", "s 2", "s 2", "s 2", "s 2", "s 3"})
}

func checkDead(t *testing.T, s *session.Session) {
	t.Helper()
	ctx := context.Background()
	calls := map[string]func() error{
		"Append":   func() error { _, err := appendStep(s, note("x")); return err },
		"Batch":    func() error { _, _, err := batch(s, note("x")); return err },
		"Info":     func() error { _, err := s.Info(ctx); return err },
		"Read":     func() error { _, err := s.Read(ctx, 0, 0, nil); return err },
		"State":    func() error { _, err := s.Surface().State(ctx); return err },
		"Contains": func() error { _, err := s.Surface().Contains(ctx, 0); return err },
		"Messages": func() error { _, err := s.Messages(ctx); return err },
		"Compact":  func() error { _, err := s.Compact(ctx, 0, 0, []byte(userData("x"))); return err },
		"Recover":  func() error { _, err := s.Recover(ctx); return err },
		"Detach":   func() error { return s.Detach(ctx) },
		"Hold":     func() error { _, err := s.Hold(ctx); return err },
		"Scan": func() error {
			for _, err := range s.Scan(ctx, 0, 0, nil) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		var gone *eventlog.NotFoundError
		if err := call(); !errors.As(err, &gone) {
			t.Errorf("%s of a deleted life: %v", name, err)
		}
	}
	if s.Live() {
		t.Error("a deleted life is live")
	}
}

// Given a deletion that the store keeps waiting, then appends queued behind it get not-found; when it fails, they go on and nothing is lost.
func TestAppendsBehindADeletion(t *testing.T) {
	broken := errors.New("broken")
	for _, fails := range []bool{false, true} {
		o, _ := driven(t)
		store := logtest.Slow(memory.New())
		set := newSet(t, store, o)
		s := create(t, set, session.New{Header: event.Header{ID: "s"}})
		appendAll(t, s, note("before"))
		gate := store.Hold(logtest.Delete)
		if fails {
			store.Fail(logtest.Delete, broken)
		}
		deleted, appended := make(chan error), make(chan error, 3)
		go func() { deleted <- set.Delete(context.Background(), "s") }()
		<-gate.Arrived()
		for range cap(appended) {
			go func() { _, err := appendStep(s, note("behind")); appended <- err }()
		}
		gate.Release()
		err := <-deleted
		for range cap(appended) {
			if err := <-appended; fails && err != nil {
				t.Errorf("append behind a deletion that failed: %v", err)
			} else if !fails {
				wantErr[*eventlog.NotFoundError](t, err)
			}
		}
		if fails {
			wantIs(t, err, broken)
			wantEqual(t, "log", len(logOf(t, s)), 4)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// Given many who open a cold session at once, then it is read once; one who leaves does not disturb the others, and when all have left it is called off.
func TestOpeningIsShared(t *testing.T) {
	o, l := driven(t)
	store := logtest.Slow(memory.New())
	set := newSet(t, store, o)
	ctx := context.Background()
	s := create(t, set, session.New{Header: event.Header{ID: "s"}})
	appendAll(t, s, user("a"))
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	store.Counts()
	l.attaches = 0

	gate := store.Hold(logtest.Info)
	leaving, cancel := context.WithCancel(ctx)
	left, opened := make(chan error), make(chan error, 4)
	go func() { _, err := set.Open(leaving, "s"); left <- err }()
	<-gate.Arrived()
	for range cap(opened) {
		go func() { _, err := s.Surface().State(ctx); opened <- err }()
	}
	cancel()
	wantIs(t, <-left, context.Canceled)
	gate.Release()
	for range cap(opened) {
		if err := <-opened; err != nil {
			t.Errorf("opening: %v", err)
		}
	}
	if l.attaches != 1 {
		t.Errorf("attached %d times", l.attaches)
	}

	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	gate = store.Hold(logtest.Read)
	leaving, cancel = context.WithCancel(ctx)
	go func() { _, err := set.Open(leaving, "s"); left <- err }()
	<-gate.Arrived()
	cancel()
	wantIs(t, <-left, context.Canceled)
	if s.Live() {
		t.Error("live though everybody left")
	}
	go func() { _, err := set.Open(ctx, "s"); left <- err }()
	<-gate.Arrived()
	gate.Release()
	if err := <-left; err != nil {
		t.Errorf("opening after one that was called off: %v", err)
	}
}

// Given a session that cannot be opened, then each touch says why, and it can still be deleted.
func TestDamagedSessions(t *testing.T) {
	store := memory.New()
	ctx := context.Background()
	list := events(drafts(user("a"), user("b")))
	list[1].Op = event.Replace(7, 7)
	if _, err := store.Create(ctx, eventlog.Creation{Header: event.Header{ID: "s"}, Events: each(list)}); err != nil {
		t.Fatal(err)
	}
	set := newSet(t, store, quiet())
	for range 2 {
		_, err := set.Open(ctx, "s")
		if c := wantErr[*eventlog.CorruptError](t, err); c != nil && c.Seq != 1 {
			t.Errorf("damage at seq %d, want 1", c.Seq)
		}
		_, err = set.Fork(ctx, "s", session.Fork{})
		wantErr[*eventlog.CorruptError](t, err)
	}
	if err := set.Delete(ctx, "s"); err != nil {
		t.Error(err)
	}
}

// Given a set that closes, then the append in its turn finishes, queued and later ones get ErrClosed, and every drive is detached.
func TestClose(t *testing.T) {
	o, l := driven(t)
	store := logtest.Slow(memory.New())
	set := session.NewSet(store, o)
	s, other := create(t, set, session.New{}), create(t, set, session.New{})
	gate := store.Hold(logtest.Append)
	inTurn, queued, closed := make(chan error), make(chan error), make(chan error)
	go func() { _, err := appendStep(s, note("in its turn")); inTurn <- err }()
	<-gate.Arrived()
	go func() { closed <- set.Close() }()
	for !errors.Is(openErr(set, other.ID()), session.ErrClosed) {
	}
	go func() { _, err := appendStep(s, note("queued")); queued <- err }()
	gate.Release()
	if err := <-inTurn; err != nil {
		t.Errorf("the append in its turn: %v", err)
	}
	wantIs(t, <-queued, session.ErrClosed)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if len(l.attached) != 0 {
		t.Errorf("%d drives still attached", len(l.attached))
	}
	_, err := appendStep(other, note("x"))
	wantIs(t, err, session.ErrClosed)
	_, err = set.Create(context.Background(), session.New{})
	wantIs(t, err, session.ErrClosed)
	wantIs(t, set.Delete(context.Background(), s.ID()), session.ErrClosed)
	_, err = set.Fork(context.Background(), s.ID(), session.Fork{})
	wantIs(t, err, session.ErrClosed)
	if err := set.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	wantEqual(t, "log", len(logOf(t, s)), 1)
}

func openErr(set *session.Set, id string) error {
	_, err := set.Open(context.Background(), id)
	return err
}

// Given an opening that the store keeps waiting, when the set closes, then the opener gets ErrClosed.
func TestCloseWhileOpening(t *testing.T) {
	store := logtest.Slow(memory.New())
	set := session.NewSet(store, quiet())
	s := create(t, set, session.New{})
	if err := s.Detach(context.Background()); err != nil {
		t.Fatal(err)
	}
	gate := store.Hold(logtest.Info)
	opened := make(chan error)
	go func() { opened <- openErr(set, s.ID()) }()
	<-gate.Arrived()
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	wantIs(t, <-opened, session.ErrClosed)
}

// Given a drive that panics, then the append is committed and observers are told, and the session is attached anew from its log at the next touch.
func TestDriveThatPanics(t *testing.T) {
	o, l := driven(t)
	set := newSet(t, memory.New(), o)
	var seen []int64
	set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) { seen = append(seen, events[0].Seq) })
	s := create(t, set, session.New{})
	l.panicAt = 1
	appendAll(t, s, note("a"), note("b"), note("c"))
	wantEqual(t, "seen", seen, []int64{0, 1, 2})
	if head, ok := l.head(s.ID()); !ok || head != 2 || l.attaches != 2 {
		t.Errorf("head %d, %v after %d attaches", head, ok, l.attaches)
	}
}

// Given a drive that panics and an observer that takes its time over the same event, when another append is queued behind it, then the later observers hear of the
// first event first: the session is opened again only when the turn is over.
func TestADriveThatPanicsKeepsTheOrderOfObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := driven(t)
		set := newSet(t, memory.New(), o)
		s := create(t, set, session.New{})
		release := make(chan struct{})
		var heard []int64
		set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) {
			if events[0].Seq == 0 {
				<-release
			}
		})
		set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) {
			heard = append(heard, events[0].Seq)
		})
		l.panicAt = 0
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := appendStep(s, note("x")); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first is with the observer, the second in the queue
		}
		wantEqual(t, "heard behind an observer that takes its time", heard, nil)
		wantEqual(t, "log", len(logOf(t, s)), 1)
		close(release)
		all.Wait()
		wantEqual(t, "heard", heard, []int64{0, 1})
		if head, ok := l.head(s.ID()); !ok || head != 1 || l.attaches != 2 {
			t.Errorf("head %d, %v after %d attaches", head, ok, l.attaches)
		}
		set.Close()
	})
}
