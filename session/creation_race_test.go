package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// meddling calls a function between the commit of a creation and its return, once.
type meddling struct {
	eventlog.Store
	meddle func()
}

func (m *meddling) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	info, err := m.Store.Create(ctx, c)
	if f := m.meddle; f != nil {
		m.meddle = nil
		f()
	}
	return info, err
}

// Given somebody who opens, deletes or makes again what is just being created, before its creator has come back, then there is one drive at most, and the
// creator gets the life that it made or not-found.
func TestCreationsThatAreOvertaken(t *testing.T) {
	header := session.New{Header: event.Header{ID: "s"}}
	for name, tt := range map[string]struct {
		meddle   func(ctx context.Context, set *session.Set) error
		gone     bool
		attaches int
	}{
		"opened": {func(ctx context.Context, set *session.Set) error {
			s, err := set.Open(ctx, "s")
			if err == nil {
				_, err = appendStep(s, note("first"))
			}
			return err
		}, false, 1},
		"opened and gone cold": {func(ctx context.Context, set *session.Set) error {
			s, err := set.Open(ctx, "s")
			if err == nil {
				_, err = appendStep(s, note("first"))
			}
			if err == nil {
				err = s.Detach(ctx)
			}
			return err
		}, false, 2},
		"deleted": {func(ctx context.Context, set *session.Set) error { return set.Delete(ctx, "s") }, true, 0},
		"deleted and made again": {func(ctx context.Context, set *session.Set) error {
			err := set.Delete(ctx, "s")
			if err == nil {
				_, err = set.Create(ctx, header)
			}
			return err
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o, l := driven(t)
			store := &meddling{Store: memory.New()}
			set := newSet(t, store, o)
			ctx := context.Background()
			store.meddle = func() {
				if err := tt.meddle(ctx, set); err != nil {
					t.Errorf("meddling: %v", err)
				}
			}
			s, err := set.Create(ctx, header)
			if tt.gone {
				wantErr[*eventlog.NotFoundError](t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, s, note("second"))
			wantEqual(t, "log", len(logOf(t, s)), 2)
			if head, ok := l.head("s"); !ok || head != 1 || l.attaches != tt.attaches {
				t.Errorf("head %d, %v after %d attaches", head, ok, l.attaches)
			}
		})
	}
}

// sulking is a driver whose next attachments panic.
type sulking struct {
	*ledger
	times int
}

func (d *sulking) Attach(s *session.Session, head int64) session.Drive {
	if d.times > 0 {
		d.times--
		panic("not now")
	}
	return d.ledger.Attach(s, head)
}

// Given a driver that panics when it is attached, then opening fails and says so, a creation stands though it is not live, and the next touch tries again.
func TestDriverThatPanicsWhenAttached(t *testing.T) {
	o := quiet()
	d := &sulking{newLedger(t), 2}
	o.Driver = d
	set := newSet(t, memory.New(), o)
	ctx := context.Background()
	s, err := set.Create(ctx, session.New{Header: event.Header{ID: "s"}})
	if err != nil {
		t.Fatalf("it was created, and yet: %v", err)
	}
	if s.Live() {
		t.Error("live without a drive")
	}
	appendAll(t, s, note("x"))
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	d.times = 1
	_, err = set.Open(ctx, "s")
	wantErr[*session.PanicError](t, err)
	appendAll(t, s, note("y"))
	if head, ok := d.head("s"); !ok || head != 1 {
		t.Errorf("head %d, %v", head, ok)
	}
}

// Given a set that closes while a session is being created, then the creation stands, and nothing is attached once the set is closed.
func TestACreationThatMeetsTheClose(t *testing.T) {
	o, l := driven(t)
	store := logtest.Slow(memory.New())
	set := session.NewSet(store, o)
	gate := store.Hold(logtest.Create)
	created, closed := make(chan error), make(chan error)
	go func() {
		s, err := set.Create(context.Background(), session.New{Header: event.Header{ID: "s"}})
		if err == nil && s.Live() {
			t.Error("live in a set that is closed")
		}
		created <- err
	}()
	<-gate.Arrived()
	go func() { closed <- set.Close() }()
	for !errors.Is(openErr(set, "other"), session.ErrClosed) {
	}
	gate.Release()
	if err := <-created; err != nil {
		t.Errorf("it was created, and yet: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, ok := l.head("s"); ok {
		t.Error("a drive is attached")
	}
	if _, err := store.Info(context.Background(), "s"); err != nil {
		t.Errorf("the log: %v", err)
	}
}

// slowDriver is a driver that attaches when it is told to.
type slowDriver struct {
	*ledger
	attach chan struct{}
}

func (d slowDriver) Attach(s *session.Session, head int64) session.Drive {
	<-d.attach
	return d.ledger.Attach(s, head)
}

// Given a driver that takes its time with a new session, when somebody who waits for the session leaves, then the creation goes on.
func TestAWaiterThatLeavesACreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		d := slowDriver{newLedger(t), make(chan struct{})}
		o.Driver = d
		set := session.NewSet(memory.New(), o)
		created, opened := make(chan error), make(chan error)
		go func() {
			_, err := set.Create(context.Background(), session.New{Header: event.Header{ID: "s"}})
			created <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, err := set.Open(ctx, "s"); opened <- err }()
		synctest.Wait()
		cancel()
		wantIs(t, <-opened, context.Canceled)
		close(d.attach)
		if err := <-created; err != nil {
			t.Error(err)
		}
		s, err := set.Open(context.Background(), "s")
		if err != nil || !s.Live() {
			t.Errorf("not live: %v", err)
		}
		wantEqual(t, "attached", d.attaches, 1)
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}
