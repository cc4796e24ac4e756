package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
)

// Whatever waits is committed with one sync.
func TestWhatWaitsSharesOneSync(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	const sessions = 64
	for i := range sessions {
		create(t, s, fmt.Sprint("s", i))
	}
	release := holdWriter(s)
	before := s.disk.syncs.Load()
	var wg sync.WaitGroup
	commits := make([]eventlog.Commit, sessions)
	for i := range sessions {
		wg.Go(func() {
			var err error
			commits[i], err = s.Append(nowhere, eventlog.Batch{Life: eventlog.Life{ID: fmt.Sprint("s", i)}, Events: row(0, 2)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	waitForLine(s, sessions)
	release()
	wg.Wait()
	// The first transaction is that of whoever held the writer, and takes in all that waits.
	if n := s.disk.syncs.Load() - before; n != 1 {
		t.Errorf("%d syncs for %d appends that waited", n, sessions)
	}
	seen := map[int64]bool{}
	for _, c := range commits {
		seen[c.Position], seen[c.Position-1] = true, true
	}
	if len(seen) != 2*sessions {
		t.Errorf("%d positions for %d events", len(seen), 2*sessions)
	}
}

// One that is refused in a group costs the others nothing, and sees what they did.
func TestARefusalInAGroupIsItsOwn(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	create(t, s, "a")
	release := holdWriter(s)
	errs := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	waiting := 0
	put := func(name string, f func() error) {
		wg.Go(func() {
			err := f()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
		waiting++
		waitForLine(s, waiting)
	}
	put("first", func() error { return add(s, "a", row(0, 1)...) })
	put("late", func() error { return add(s, "a", row(0, 1)...) })
	put("elsewhere", func() error { return add(s, "none", row(0, 1)...) })
	put("second", func() error { return add(s, "a", row(1, 1)...) })
	put("taken", func() error {
		return s.change(nowhere, 0, func(w *writer) error {
			_, err := w.create(&making{s: s, ctx: nowhere, log: log{id: "a"}})
			return err
		})
	})
	put("delete", func() error { return s.Delete(nowhere, eventlog.Life{ID: "a"}) })
	put("third", func() error { return add(s, "a", row(2, 1)...) })
	release()
	wg.Wait()
	if errs["first"] != nil || errs["second"] != nil || errs["delete"] != nil {
		t.Errorf("%v", errs)
	}
	if e := as[*eventlog.SeqConflictError](t, "late", errs["late"]); e.Seq != 1 {
		t.Errorf("%+v", e)
	}
	as[*eventlog.NotFoundError](t, "elsewhere", errs["elsewhere"])
	as[*eventlog.ExistsError](t, "taken", errs["taken"])
	as[*eventlog.NotFoundError](t, "third", errs["third"])
}

// A caller leaves the line at once; one whose change is being made waits for what becomes of it.
func TestLeavingTheLine(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	create(t, s, "a")
	release := holdWriter(s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Append(ctx, eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(0, 1)})
		done <- err
	}()
	waitForLine(s, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Append: %v", err)
	}
	release()
	mustAdd(t, s, "a", row(0, 1)...)

	ctx, cancel = context.WithCancel(t.Context())
	taken, goOn := make(chan struct{}), make(chan struct{})
	go func() {
		done <- s.change(ctx, 0, func(w *writer) error {
			close(taken)
			<-goOn
			_, err := w.append(&eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(1, 1)})
			return err
		})
	}()
	<-taken
	cancel()
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("a change under way: %v", err)
	}
	holds(t, s, "a", row(0, 2))
}

func TestCloseWaitsForCallsUnderWay(t *testing.T) {
	dir := memoryDir(t)
	s := reopen(t, dir, Options{})
	create(t, s, "a")
	release := holdWriter(s)
	appended, closed := make(chan error, 1), make(chan error, 1)
	go func() { appended <- add(s, "a", row(0, 1)...) }()
	waitForLine(s, 1)
	go func() { closed <- s.Close() }()
	for {
		s.life.mu.Lock()
		refused := s.life.closed
		s.life.mu.Unlock()
		if refused {
			break
		}
	}
	if _, err := s.Info(t.Context(), "a"); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Info of a store that closes: %v", err)
	}
	release()
	if err := <-appended; err != nil {
		t.Errorf("the append under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	holds(t, reopen(t, dir, Options{}), "a", row(0, 1))
}

// What the engine cannot recover from costs the one store its writing, and nothing else.
func TestAPanicOfTheEngineIsContained(t *testing.T) {
	dir := memoryDir(t)
	s := reopen(t, dir, Options{})
	create(t, s, "a", row(0, 2)...)
	err := s.change(nowhere, 0, func(w *writer) error {
		if _, err := w.append(&eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(2, 1)}); err != nil {
			return err
		}
		panic("out of memory")
	})
	as[*eventlog.ReadOnlyError](t, "the change", err)
	err = s.readers.read(nowhere, func(*reader) error { panic("out of memory") })
	if err == nil {
		t.Error("a read that panicked went well")
	}
	holds(t, s, "a", row(0, 2))
	closeStore(t, s)
	wholeOrNot(t, dir, 2, 0)
}
