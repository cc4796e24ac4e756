package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// outcome is a session over a store that fails on command, with a driver and an observer that see what is published.
type outcome struct {
	inner  *memory.Store
	store  *logtest.SlowStore
	set    *session.Set
	s      *session.Session
	ledger *ledger
	seen   []int64
}

func newOutcome(t *testing.T) *outcome {
	o, l := driven(t)
	x := &outcome{inner: memory.New(), ledger: l}
	x.store = logtest.Slow(x.inner)
	x.set = newSet(t, x.store, o)
	x.set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) {
		for _, ev := range events {
			x.seen = append(x.seen, ev.Seq)
		}
	})
	x.s = create(t, x.set, session.New{Header: event.Header{ID: "s"}})
	return x
}

// published wants the drive and the observers to have heard of the first n events, once and in order.
func (x *outcome) published(t *testing.T, n int64) {
	t.Helper()
	if head, ok := x.ledger.head("s"); !ok || head != n-1 {
		t.Errorf("the drive is at head %d, %v; want %d", head, ok, n-1)
	}
	var want []int64
	for seq := range n {
		want = append(want, seq)
	}
	wantEqual(t, "observed", x.seen, want)
	wantEqual(t, "surface", state(t, x.s).AsOfSeq, n-1)
}

func (x *outcome) next(t *testing.T, want int64) {
	t.Helper()
	ev, err := appendStep(x.s, user("next"))
	if err != nil || ev.Seq != want {
		t.Errorf("the next append got seq %d, %v; want %d", ev.Seq, err, want)
	}
}

var errBroken = errors.New("the connection broke")

// Given an append whose outcome the store does not tell, then what the store holds decides: what is there is published once, what is not gives its seq back.
func TestUnknownOutcome(t *testing.T) {
	t.Run("it was not committed", func(t *testing.T) {
		x := newOutcome(t)
		x.store.Fail(logtest.Append, errBroken)
		_, err := appendStep(x.s, user("a"))
		wantIs(t, err, errBroken)
		x.published(t, 0)
		x.next(t, 0)
		x.published(t, 1)
	})
	t.Run("it was committed", func(t *testing.T) {
		x := newOutcome(t)
		x.store.Lose(logtest.Append, errBroken)
		_, err := appendStep(x.s, user("a"))
		wantIs(t, err, errBroken)
		x.published(t, 1)
		wantEqual(t, "nodes", state(t, x.s).Nodes, []int64{0})
		x.next(t, 1)
		x.published(t, 2)
		wantEqual(t, "attached", x.ledger.attaches, 1)
	})
	t.Run("it was committed, and the key tells so", func(t *testing.T) {
		x := newOutcome(t)
		x.store.Lose(logtest.Append, errBroken)
		request := session.Batch{Items: items(user("a"), user("b")), Once: session.Once{Key: "k", Digest: "d"}}
		_, _, err := x.s.AppendBatch(context.Background(), request)
		wantIs(t, err, errBroken)
		commit, events, err := x.s.AppendBatch(context.Background(), request)
		if err != nil || !commit.Repeated || len(events) != 2 {
			t.Errorf("again: %+v, %d events, %v", commit, len(events), err)
		}
		x.published(t, 2)
	})
	t.Run("and the head cannot be read", func(t *testing.T) {
		x := newOutcome(t)
		x.store.Lose(logtest.Append, errBroken)
		unreadable := errors.New("unreadable")
		x.store.Fail(logtest.Info, unreadable)
		_, err := appendStep(x.s, user("a"))
		wantIs(t, err, errBroken)
		wantIs(t, err, unreadable)
		if x.s.Live() {
			t.Error("live, and nobody knows as of which event")
		}
		wantEqual(t, "nodes", state(t, x.s).Nodes, []int64{0})
		if head, ok := x.ledger.head("s"); !ok || head != 0 {
			t.Errorf("attached at head %d, %v", head, ok)
		}
		x.next(t, 1)
	})
}

// Given an append whose outcome the store does not tell, when the store then says what cannot be, or cannot be read, then the session goes cold: nobody knows
// what it holds.
func TestUnknownOutcomeOfAStoreThatIsNotSound(t *testing.T) {
	for name, c := range map[string]struct {
		lie func(*lying)
		in  func(err error) bool
	}{
		"the log became shorter": {func(l *lying) { l.info = func(i *eventlog.Info) { i.Seq-- } }, isDamage(0)},
		"the log ends early":     {func(l *lying) { l.info = func(i *eventlog.Info) { i.Seq++ } }, isDamage(1)},
		"the log cannot be read": {func(l *lying) { l.info, l.read = func(i *eventlog.Info) { i.Seq++ }, errUnreadable }, func(err error) bool { return errors.Is(err, errUnreadable) }},
	} {
		t.Run(name, func(t *testing.T) {
			store := &lying{SlowStore: logtest.Slow(memory.New())}
			s := create(t, newSet(t, store, quiet()), session.New{})
			appendAll(t, s, note("a"))
			c.lie(store)
			store.Fail(logtest.Append, errBroken)
			_, err := appendStep(s, note("b"))
			wantIs(t, err, errBroken)
			if !c.in(err) || s.Live() {
				t.Errorf("got %v, live %v", err, s.Live())
			}
			store.info, store.read = nil, nil
			if ev, err := appendStep(s, note("b")); err != nil || ev.Seq != 1 {
				t.Errorf("once the store is sound: seq %d, %v", ev.Seq, err)
			}
		})
	}
}

// Given a log that was empty when the store was asked and grew since, when it is opened, then the session begins with the empty log, and catches up when it appends.
func TestOpeningWhatGrows(t *testing.T) {
	store := &lying{SlowStore: logtest.Slow(memory.New())}
	s := create(t, newSet(t, store, quiet()), session.New{})
	appendAll(t, s, user("theirs"))
	if err := s.Detach(context.Background()); err != nil {
		t.Fatal(err)
	}
	store.info = func(i *eventlog.Info) { i.Seq = 0 }
	wantEqual(t, "surface", state(t, s), session.SurfaceState{AsOfSeq: -1})
	store.info = nil
	_, err := appendStep(s, user("ours"))
	wantErr[*eventlog.SeqConflictError](t, err)
	wantEqual(t, "nodes", state(t, s).Nodes, []int64{0})
}

var errUnreadable = errors.New("unreadable")

func isDamage(seq int64) func(error) bool {
	return func(err error) bool {
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		return ok && damage.Seq == seq
	}
}

// lying is a store that says of itself what is not so.
type lying struct {
	*logtest.SlowStore
	info func(*eventlog.Info)
	read error
}

func (l *lying) Info(ctx context.Context, id string) (eventlog.Info, error) {
	i, err := l.SlowStore.Info(ctx, id)
	if l.info != nil {
		l.info(&i)
	}
	return i, err
}

func (l *lying) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if l.read != nil {
		return eventlog.Page{}, l.read
	}
	return l.SlowStore.Read(ctx, q)
}

// eager commits whatever happens to the context, which ends in the middle.
type eager struct {
	eventlog.Store
	cancel context.CancelFunc
}

func (e *eager) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	if e.cancel != nil {
		e.cancel()
	}
	return e.Store.Append(context.WithoutCancel(ctx), b)
}

// Given a context that ends during the commit, then the store's answer decides.
func TestContextEndsDuringTheCommit(t *testing.T) {
	t.Run("the store gives up", func(t *testing.T) {
		x := newOutcome(t)
		gate := x.store.Hold(logtest.Append)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { _, err := x.s.Append(ctx, "x", 1, session.Intent{}); done <- err }()
		<-gate.Arrived()
		cancel()
		wantIs(t, <-done, context.Canceled)
		gate.Release()
		x.published(t, 0)
		x.next(t, 0)
	})
	t.Run("the store commits", func(t *testing.T) {
		store := &eager{Store: memory.New()}
		o, l := driven(t)
		s := create(t, newSet(t, store, o), session.New{})
		ctx, cancel := context.WithCancel(context.Background())
		store.cancel = cancel
		if ev, err := s.Append(ctx, "x", 1, session.Intent{}); err != nil || ev.Seq != 0 {
			t.Errorf("committed, and got %+v, %v", ev, err)
		}
		if head, _ := l.head(s.ID()); head != 0 {
			t.Errorf("published up to %d", head)
		}
	})
}

// Given a refusal that says nothing was written, then it comes back as it is, and the store is asked nothing more.
func TestCertainRefusals(t *testing.T) {
	for _, refusal := range []error{&eventlog.DiskFullError{}, &eventlog.InvalidError{}, &eventlog.KeyReusedError{}, eventlog.ErrClosed} {
		x := newOutcome(t)
		x.store.Fail(logtest.Append, refusal)
		x.store.Counts()
		_, err := appendStep(x.s, user("a"))
		wantIs(t, err, refusal)
		wantEqual(t, "calls", x.store.Counts().Calls, map[logtest.Op]int{logtest.Append: 1})
		x.next(t, 0)
	}
}

// Given events that somebody else committed, when we append, then that is a conflict which names the head, and theirs are applied and published first.
func TestForeignCommits(t *testing.T) {
	x := newOutcome(t)
	appendAll(t, x.s, user("a"))
	foreign := events(drafts(user("a"), note("theirs"), user("b").replacing(0, 0, 0)))[1:]
	if _, err := x.inner.Append(context.Background(), eventlog.Batch{Life: eventlog.Life{ID: "s"}, Events: foreign}); err != nil {
		t.Fatal(err)
	}
	_, err := appendStep(x.s, user("c"))
	if c := wantErr[*eventlog.SeqConflictError](t, err); c != nil {
		wantEqual(t, "conflict", *c, eventlog.SeqConflictError{ID: "s", Seq: 3, Expected: 1})
	}
	x.published(t, 3)
	wantEqual(t, "nodes", state(t, x.s).Nodes, []int64{2})
	wantEqual(t, "messages", messageIDs(messages(t, x.s)), []string{"u-b"})
	x.next(t, 3)
	x.published(t, 4)
}

// Given more foreign events than are adopted at a time, and a drive that fails among them, then observers hear of all, once and in order, and the next drive starts from the log.
func TestManyForeignCommits(t *testing.T) {
	x := newOutcome(t)
	steps := make([]step, 2500)
	for i := range steps {
		steps[i] = note("theirs")
	}
	if _, err := x.inner.Append(context.Background(), eventlog.Batch{Life: eventlog.Life{ID: "s"}, Events: events(drafts(steps...))}); err != nil {
		t.Fatal(err)
	}
	x.ledger.panicAt = 700
	_, err := appendStep(x.s, user("c"))
	if c := wantErr[*eventlog.SeqConflictError](t, err); c != nil {
		wantEqual(t, "head", c.Seq, 2500)
	}
	state(t, x.s) // opens it
	x.published(t, 2500)
	wantEqual(t, "attached", x.ledger.attaches, 2)
}

// Given a foreign event that no session would have accepted, when we append, then that is damage at its seq, and the session is served no more.
func TestForeignDamage(t *testing.T) {
	x := newOutcome(t)
	bad := events(drafts(user("a"), user("b").replacing(7, 7, 7)))
	if _, err := x.inner.Append(context.Background(), eventlog.Batch{Life: eventlog.Life{ID: "s"}, Events: bad}); err != nil {
		t.Fatal(err)
	}
	_, err := appendStep(x.s, user("c"))
	if damage := wantErr[*eventlog.CorruptError](t, err); damage != nil && damage.Seq != 1 {
		t.Errorf("damage at seq %d, want 1", damage.Seq)
	}
	_, err = x.s.Surface().State(context.Background())
	wantErr[*eventlog.CorruptError](t, err)
}

// Given a log that somebody else deleted, and perhaps made again, when we append, then the life is over.
func TestForeignDeletions(t *testing.T) {
	for _, again := range []bool{false, true} {
		x := newOutcome(t)
		ctx := context.Background()
		appendAll(t, x.s, user("a"))
		if err := x.inner.Delete(ctx, eventlog.Life{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		if again {
			if _, err := x.inner.Create(ctx, eventlog.Creation{Header: event.Header{ID: "s"}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := appendStep(x.s, user("b"))
		wantErr[*eventlog.NotFoundError](t, err)
		checkDead(t, x.s)
		wantEqual(t, "drives that were told of a deletion", x.ledger.deletes, 1)
		if s, err := x.set.Open(ctx, "s"); again && (err != nil || len(logOf(t, s)) != 0) {
			t.Errorf("the new life: %v", err)
		}
	}
}

// Given an append that waits in the store for a key that another writer uses meanwhile, then the first commit is given, and published once; where it cannot be read, that
// is the error, and the next try gives it.
func TestKeyUsedBySomebodyElse(t *testing.T) {
	for _, broken := range []logtest.Op{"", logtest.Info, logtest.Read} {
		x := newOutcome(t)
		gate := x.store.Hold(logtest.Append)
		request := func() error {
			commit, events, err := x.s.AppendBatch(context.Background(), session.Batch{Items: items(note("x")), Once: session.Once{Key: "k", Digest: "d"}})
			if err == nil && (!commit.Repeated || len(events) != 1 || events[0].Time != 1) {
				t.Errorf("got %+v, %+v", commit, events)
			}
			return err
		}
		done := make(chan error)
		go func() { done <- request() }()
		<-gate.Arrived()
		if _, err := x.inner.Append(context.Background(), eventlog.Batch{Life: eventlog.Life{ID: "s"}, Events: events(drafts(note("x"))), Key: "k", Digest: "d"}); err != nil {
			t.Fatal(err)
		}
		if broken != "" {
			x.store.Fail(broken, errBroken)
		}
		gate.Release()
		err := <-done
		if broken != "" {
			wantIs(t, err, errBroken)
			err = request()
		}
		if err != nil {
			t.Error(err)
		}
		state(t, x.s) // opens it where it went cold
		if head, ok := x.ledger.head("s"); !ok || head != 0 {
			t.Errorf("%s fails: the drive is at head %d, %v", broken, head, ok)
		}
		if broken == "" {
			x.published(t, 1)
		}
	}
}
