package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// answer is what an append returned.
type answer struct {
	commit eventlog.Commit
	events []event.Event
	err    error
}

// queue is a session whose turn is taken by an append that the store holds, so that what is appended meanwhile stands in line.
type queue struct {
	*testing.T
	set   *session.Set
	s     *session.Session
	store logtest.Grouping
	gate  *logtest.Gate
	first <-chan answer
}

// queued runs f in a bubble with the turn taken. Whoever appends there has to wait with synctest.Wait for its place in the line.
func queued(t *testing.T, f func(q *queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := logtest.Grouping{SlowStore: logtest.Slow(memory.New())}
		q := &queue{T: t, set: session.NewSet(store, quiet()), store: store}
		q.s = create(t, q.set, session.New{})
		appendAll(t, q.s, user("zero"))
		q.gate = store.Hold(logtest.Append)
		q.first = q.append(session.Batch{Items: items(note("first"))})
		<-q.gate.Arrived()
		store.Counts()
		f(q)
		if err := q.set.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (q *queue) append(b session.Batch) <-chan answer { return q.appendWith(context.Background(), b) }

// appendWith puts a batch in line behind those that are there.
func (q *queue) appendWith(ctx context.Context, b session.Batch) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		var o answer
		o.commit, o.events, o.err = q.s.AppendBatch(ctx, b)
		done <- o
	}()
	synctest.Wait()
	return done
}

func plain(st ...step) session.Batch { return session.Batch{Items: items(st...)} }

// Given appends that come while another is being committed, when that is done, then they are one commit, in the order in which they came, each with its own events.
func TestAppendsThatWaitShareACommit(t *testing.T) {
	queued(t, func(q *queue) {
		var heard []string
		q.set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) {
			heard = append(heard, fmt.Sprint(events[0].Seq, "+", len(events)))
		})
		var all []<-chan answer
		for i := range 50 {
			all = append(all, q.append(plain(slices.Repeat([]step{user(fmt.Sprint(i))}, 1+i%3)...)))
		}
		q.gate.Release()
		wantEqual(t, "the first", (<-q.first).commit.Seq, int64(2))
		next, want := int64(2), []string{"1+1"}
		for i, done := range all {
			o := <-done
			n := int64(1 + i%3)
			if o.err != nil || o.commit.First != next || o.commit.Seq != next+n || int64(len(o.events)) != n {
				t.Fatalf("append %d, of %d events from %d: %+v", i, n, next, o)
			}
			if got := string(o.events[0].Data); got != userData(fmt.Sprint(i)) {
				t.Fatalf("append %d got %s", i, got)
			}
			want = append(want, fmt.Sprint(next, "+", n))
			next += n
		}
		wantEqual(t, "heard", heard, want)
		counts := q.store.Counts()
		wantEqual(t, "commits", []int{counts.Calls[logtest.Append], counts.Calls[logtest.Group]}, []int{0, 1})
		wantEqual(t, "events", int64(len(logOf(t, q.s))), next)
		wantEqual(t, "nodes", int64(len(state(t, q.s).Nodes)), next-1)
	})
}

// Given a line of appends of every kind, then each is answered as if the others had come before it one by one.
func TestEachOfALineIsAnsweredAsIfAlone(t *testing.T) {
	seq := func(n int64) *int64 { return &n }
	queued(t, func(q *queue) {
		q.set.AddGuard(func(_ context.Context, _ *session.Session, events []event.Event) error {
			if string(events[0].Data) == `{"text":"forbidden"}` {
				return errors.New("no")
			}
			return nil
		})
		keyed := func(key, digest string, st ...step) session.Batch {
			b := plain(st...)
			b.Once = session.Once{Key: key, Digest: digest}
			return b
		}
		at := func(n int64, st ...step) session.Batch {
			b := plain(st...)
			b.ExpectedSeq = seq(n)
			return b
		}
		leaving, leave := context.WithCancel(context.Background())
		ordinary := q.append(plain(note("a")))                                                   // 2
		conflict := q.append(at(2, note("b")))                                                   // is at 3
		fitting := q.append(at(3, user("c"), user("d")))                                         // 3, 4
		refused := q.append(plain(note("x"), step{typ: "turn/start", data: `{}`, in: appended})) // what a turn's start must not have
		vetoed := q.append(plain(note("forbidden")))
		left := q.appendWith(leaving, plain(note("never")))
		request := q.append(keyed("k", "d", note("e"), note("f"))) // 5, 6
		twin := q.append(keyed("k", "d", note("e"), note("f")))
		other := q.append(keyed("k", "other", note("g")))
		replacing := q.append(plain(user("h").replacing(3, 4, 3, 4))) // 7
		alone := plain(note("i"))
		alone.Alone = true
		single := q.append(alone)          // 8
		last := q.append(plain(user("j"))) // 9
		leave()
		wantIs(t, (<-left).err, context.Canceled)
		q.gate.Release()

		<-q.first
		if e := wantErr[*eventlog.SeqConflictError](t, (<-conflict).err); e.Seq != 3 || e.Expected != 2 {
			t.Errorf("%+v", e)
		}
		if e := wantErr[*event.IndexError](t, (<-refused).err); e.Index != 1 {
			t.Errorf("%+v", e)
		}
		wantErr[*session.VetoError](t, (<-vetoed).err)
		wantErr[*eventlog.KeyReusedError](t, (<-other).err)
		for what, c := range map[string]struct {
			done  <-chan answer
			first int64
			n     int
		}{"ordinary": {ordinary, 2, 1}, "fitting": {fitting, 3, 2}, "request": {request, 5, 2}, "twin": {twin, 5, 2}, "replacing": {replacing, 7, 1}, "alone": {single, 8, 1}, "last": {last, 9, 1}} {
			o := <-c.done
			if o.err != nil || o.commit.First != c.first || len(o.events) != c.n || o.events[0].Seq != c.first || o.commit.Repeated != (what == "twin") {
				t.Errorf("%s: %+v", what, o)
			}
		}
		wantEqual(t, "events", len(logOf(t, q.s)), 10)
		wantEqual(t, "nodes", state(t, q.s).Nodes, []int64{0, 7, 9})
		if counts := q.store.Counts(); counts.Calls[logtest.Group] == 0 {
			t.Error("nothing shared a commit")
		}
	})
}

// Given a shared commit that the store refuses, then each append is tried for itself. What had conflicted with one that did not come to be is then right.
func TestALineWhoseCommitIsRefusedIsTriedOneByOne(t *testing.T) {
	queued(t, func(q *queue) {
		n := int64(2)
		large, small := q.append(plain(note("large"))), q.append(plain(note("small")))
		b := plain(note("expecting"))
		b.ExpectedSeq = &n
		expecting := q.append(b)
		full := &eventlog.DiskFullError{Cause: errors.New("no room")}
		q.store.Fail(logtest.Append, nil) // of the first
		q.store.Fail(logtest.Group, full)
		q.store.Fail(logtest.Append, full)
		q.store.Fail(logtest.Append, full)
		q.gate.Release()
		<-q.first
		wantErr[*eventlog.DiskFullError](t, (<-large).err)
		wantErr[*eventlog.DiskFullError](t, (<-small).err)
		if o := <-expecting; o.err != nil || o.commit.First != 2 {
			t.Errorf("%+v", o)
		}
		wantEqual(t, "log", types(logOf(t, q.s)), []string{event.UserMessage, "test/note", "test/note"})
	})
}

// Given a shared commit of which nobody knows whether it happened, then the session finds out, everybody gets the error, and the log is heard whole and once.
func TestALineWhoseCommitIsInDoubt(t *testing.T) {
	for name, happened := range map[string]bool{"it happened": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			queued(t, func(q *queue) {
				var heard []int64
				q.set.AddObserver(func(_ context.Context, _ *session.Session, events []event.Event) {
					for i := range events {
						heard = append(heard, events[i].Seq)
					}
				})
				one, two := q.append(plain(note("one"))), q.append(plain(user("two"), note("two")))
				lost := errors.New("the line is dead")
				want := []int64{1}
				if happened {
					q.store.Lose(logtest.Group, lost)
					want = []int64{1, 2, 3, 4}
				} else {
					q.store.Fail(logtest.Group, lost)
				}
				q.gate.Release()
				<-q.first
				wantIs(t, (<-one).err, lost)
				wantIs(t, (<-two).err, lost)
				ev, err := appendStep(q.s, note("after"))
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "heard", heard, append(want, ev.Seq))
				wantEqual(t, "events", len(logOf(t, q.s)), len(want)+2)
			})
		})
	}
}

// Given moreover a store that cannot say what it has, then the core ends, and who was not part of that commit is answered by the next one.
func TestALineBehindACommitThatIsNeverExplained(t *testing.T) {
	queued(t, func(q *queue) {
		one, two := q.append(plain(note("one"))), q.append(plain(note("two")))
		b := plain(note("never"))
		b.ExpectedSeq = new(int64)
		never := q.append(b)
		lost := errors.New("the line is dead")
		q.store.Lose(logtest.Group, lost)
		q.store.Fail(logtest.Info, lost)
		q.gate.Release()
		<-q.first
		wantIs(t, (<-one).err, lost)
		wantIs(t, (<-two).err, lost)
		if e := wantErr[*eventlog.SeqConflictError](t, (<-never).err); e.Seq != 4 {
			t.Errorf("%+v", e)
		}
	})
}

// Given a line, when the session is deleted, detached or closed before it is its turn, then the line gets what those who come later get.
func TestALineWhoseSessionEnds(t *testing.T) {
	ends := map[string]struct {
		end func(q *queue) error
		ok  func(o answer) bool
	}{
		"deleted": {func(q *queue) error { return q.set.Delete(context.Background(), q.s.ID()) }, func(o answer) bool { _, gone := errors.AsType[*eventlog.NotFoundError](o.err); return gone }},
		"closed":  {func(q *queue) error { return q.set.Close() }, func(o answer) bool { return o.err == nil || errors.Is(o.err, session.ErrClosed) }},
		"cold":    {func(q *queue) error { return q.s.Detach(context.Background()) }, func(o answer) bool { return o.err == nil }},
	}
	for name, e := range ends {
		t.Run(name, func(t *testing.T) {
			queued(t, func(q *queue) {
				ended := make(chan error, 1)
				go func() { ended <- e.end(q) }()
				synctest.Wait()
				var all []<-chan answer
				for i := range 10 {
					all = append(all, q.append(plain(note(fmt.Sprint(i)))))
				}
				q.gate.Release()
				<-q.first
				if err := <-ended; err != nil {
					t.Error(err)
				}
				for i, done := range all {
					if o := <-done; !e.ok(o) {
						t.Errorf("append %d: %+v", i, o)
					}
				}
			})
		})
	}
}

// Given a commit that many wait for, then the store may give up when all of them have left, and not before.
func TestASharedCommitEndsWithTheLastWhoWantsIt(t *testing.T) {
	queued(t, func(q *queue) {
		group := q.store.Hold(logtest.Group)
		here, leaveHere := context.WithCancel(context.Background())
		there, leaveThere := context.WithCancel(context.Background())
		one, two := q.appendWith(here, plain(note("one"))), q.appendWith(there, plain(note("two")))
		q.gate.Release()
		<-q.first
		<-group.Arrived()
		leaveHere()
		synctest.Wait()
		select {
		case o := <-one:
			t.Fatalf("%+v", o)
		default:
		}
		leaveThere()
		wantIs(t, (<-one).err, context.Canceled)
		wantIs(t, (<-two).err, context.Canceled)
		group.Release()
		wantEqual(t, "events", len(logOf(t, q.s)), 2)
	})
}

// Given a hook, which may look at the session, then each append is a commit of its own and the hook sees the log as long as its events say.
func TestWithHooksNothingSharesACommit(t *testing.T) {
	queued(t, func(q *queue) {
		q.set.AddHook(func(ctx context.Context, s *session.Session, events []event.Event) error {
			if info, err := s.Info(ctx); err != nil || info.Seq != events[0].Seq {
				t.Errorf("the hook for event %d sees %d events, %v", events[0].Seq, info.Seq, err)
			}
			return nil
		})
		var all []<-chan answer
		for range 5 {
			all = append(all, q.append(plain(note("x"))))
		}
		q.gate.Release()
		<-q.first
		for _, done := range all {
			if o := <-done; o.err != nil {
				t.Error(o.err)
			}
		}
		counts := q.store.Counts()
		wantEqual(t, "commits", []int{counts.Calls[logtest.Append], counts.Calls[logtest.Group]}, []int{5, 0})
	})
}

// Given many who append as fast as they can, then nobody waits for ever, and the log has everything once, in the order of each.
func TestManyAppendersOfOneSession(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	const workers, each = 32, 100
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := range each {
				data, _ := json.Marshal([]int{w, n})
				if _, err := s.Append(context.Background(), "x", json.RawMessage(data), session.Intent{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	next := make([]int, workers)
	for _, ev := range logOf(t, s) {
		var who []int
		if err := json.Unmarshal(ev.Data, &who); err != nil {
			t.Fatal(err)
		}
		if next[who[0]] != who[1] {
			t.Fatalf("worker %d: %d where %d belongs", who[0], who[1], next[who[0]])
		}
		next[who[0]]++
	}
	wantEqual(t, "events", next, slices.Repeat([]int{each}, workers))
}
