package logtest

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/foldhost/foldhost/eventlog"
)

// Op names a method of a store.
type Op string

// The methods that a SlowStore can hold, fail and count.
const (
	Create Op = "Create"
	Append Op = "Append"
	Info   Op = "Info"
	List   Op = "List"
	Read   Op = "Read"
	Tail   Op = "Tail"
	Lookup Op = "Lookup"
	Delete Op = "Delete"
	Group  Op = "AppendGroup"
)

// SlowStore stands before another store and makes what is rare there happen on command: short and empty pages, calls that wait,
// calls that fail, answers that get lost. With no command given it passes the suite, as the store behind it does.
//
// One mutex guards its commands and counts; it is never held during a call of the store behind.
type SlowStore struct {
	eventlog.Store

	mu     sync.Mutex
	random *rand.Rand // nil: pages as they come
	gates  map[Op]*Gate
	faults map[Op][]fault
	counts Counts
}

// Counts is what went through a SlowStore.
type Counts struct {
	// Calls counts calls by method, failed ones too.
	Calls map[Op]int
	// Appended counts the events of appends that went through, Read those that Read and Tail returned.
	Appended, Read int
}

// fault is what a coming call of one method gets. A lost call is carried out all the same.
type fault struct {
	err  error
	lost bool
}

// Slow returns a store that is like s until told otherwise.
func Slow(s eventlog.Store) *SlowStore {
	return &SlowStore{Store: s, gates: map[Op]*Gate{}, faults: map[Op][]fault{}, counts: Counts{Calls: map[Op]int{}}}
}

// Short returns a store that answers in pages of 1 to 3 events or logs, and in empty ones that only go on, drawn from the seed.
func Short(s eventlog.Store, seed uint64) *SlowStore {
	slow := Slow(s)
	slow.random = rand.New(rand.NewPCG(seed, seed))
	return slow
}

// Hold makes the calls of a method wait, before they reach the store behind, until the gate is released or their context ends, which
// leaves the store as it was. A method held twice has two gates in a row.
func (s *SlowStore) Hold(op Op) *Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &Gate{arrived: make(chan struct{}), released: make(chan struct{}), next: s.gates[op]}
	s.gates[op] = g
	return g
}

// Fail makes the next call of a method return err and do nothing. Several wait in line with those of Lose.
func (s *SlowStore) Fail(op Op, err error) { s.plan(op, fault{err: err}) }

// Lose lets the next call of a method be carried out and returns err all the same, as when the connection broke after the commit.
func (s *SlowStore) Lose(op Op, err error) { s.plan(op, fault{err: err, lost: true}) }

func (s *SlowStore) plan(op Op, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[op] = append(s.faults[op], f)
}

// Counts returns what went through since the start or the last call of Counts.
func (s *SlowStore) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	s.counts = Counts{Calls: map[Op]int{}}
	return c
}

// Gate holds calls back.
type Gate struct {
	arrived  chan struct{}
	released chan struct{}
	once     sync.Once
	next     *Gate
}

// Arrived gives one value for each call that waits at the gate. Nobody has to receive them.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Release lets all calls through from now on. Releasing twice is no fault.
func (g *Gate) Release() { g.once.Do(func() { close(g.released) }) }

func (g *Gate) pass(ctx context.Context) error {
	for ; g != nil; g = g.next {
		select {
		case <-g.released:
			continue
		case g.arrived <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-g.released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// enter counts a call, waits at the gates and says which fault the call gets. A call that is not to be carried out gets err.
func (s *SlowStore) enter(ctx context.Context, op Op) (lost, err error) {
	s.mu.Lock()
	s.counts.Calls[op]++
	gate := s.gates[op]
	s.mu.Unlock()
	if err := gate.pass(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.faults[op]
	if len(line) == 0 {
		return nil, nil
	}
	s.faults[op] = line[1:]
	if line[0].lost {
		return line[0].err, nil
	}
	return nil, line[0].err
}

// call carries out one call of a method, with what was planned for it.
func call[T any](s *SlowStore, ctx context.Context, op Op, do func() (T, error)) (T, error) {
	var none T
	lost, err := s.enter(ctx, op)
	if err != nil {
		return none, err
	}
	answer, err := do()
	if lost != nil {
		return none, lost
	}
	return answer, err
}

// Create implements eventlog.Store.
func (s *SlowStore) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	return call(s, ctx, Create, func() (eventlog.Info, error) { return s.Store.Create(ctx, c) })
}

// Append implements eventlog.Store.
func (s *SlowStore) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	return call(s, ctx, Append, func() (eventlog.Commit, error) {
		c, err := s.Store.Append(ctx, b)
		if err == nil && !c.Repeated {
			s.count(len(b.Events), 0)
		}
		return c, err
	})
}

// Grouping is a SlowStore that takes groups too. The store behind must.
type Grouping struct{ *SlowStore }

// AppendGroup implements eventlog.Grouper.
func (g Grouping) AppendGroup(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Commit, error) {
	return call(g.SlowStore, ctx, Group, func() ([]eventlog.Commit, error) {
		commits, err := g.Store.(eventlog.Grouper).AppendGroup(ctx, batches)
		for i := range commits {
			g.count(len(batches[i].Events), 0)
		}
		return commits, err
	})
}

// Info implements eventlog.Store.
func (s *SlowStore) Info(ctx context.Context, id string) (eventlog.Info, error) {
	return call(s, ctx, Info, func() (eventlog.Info, error) { return s.Store.Info(ctx, id) })
}

// List implements eventlog.Store.
func (s *SlowStore) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	return call(s, ctx, List, func() (eventlog.ListPage, error) {
		q.Limit = shorten(q.Limit, s.draw(3))
		return s.Store.List(ctx, q)
	})
}

// Read implements eventlog.Store.
func (s *SlowStore) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	return call(s, ctx, Read, func() (eventlog.Page, error) {
		n := int64(s.draw(3))
		q.Limit = shorten(q.Limit, int(n))
		page, err := s.Store.Read(ctx, q)
		// The page ends a few seqs on, even when no event of the types stands there.
		if n > 0 && err == nil && q.From+n < page.Next {
			page.Next = q.From + n
			i := 0
			for i < len(page.Events) && page.Events[i].Seq < page.Next {
				i++
			}
			page.Events = page.Events[:i:i]
			if page.Positions != nil {
				page.Positions = page.Positions[:i:i]
			}
		}
		s.count(0, len(page.Events))
		return page, err
	})
}

// Tail implements eventlog.Store.
func (s *SlowStore) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	return call(s, ctx, Tail, func() (eventlog.TailPage, error) {
		n := int64(s.draw(3))
		q.Limit = shorten(q.Limit, int(n))
		page, err := s.Store.Tail(ctx, q)
		// As in Read, by positions.
		if n > 0 && err == nil && q.After+n < page.Position {
			page.Position = q.After + n
			i := 0
			for i < len(page.Events) && page.Events[i].Position <= page.Position {
				i++
			}
			page.Events = page.Events[:i:i]
		}
		s.count(0, len(page.Events))
		return page, err
	})
}

// Lookup implements eventlog.Store.
func (s *SlowStore) Lookup(ctx context.Context, l eventlog.Life, key string) (eventlog.KeyRecord, bool, error) {
	type found struct {
		record eventlog.KeyRecord
		ok     bool
	}
	f, err := call(s, ctx, Lookup, func() (found, error) {
		record, ok, err := s.Store.Lookup(ctx, l, key)
		return found{record, ok}, err
	})
	return f.record, f.ok, err
}

// Delete implements eventlog.Store.
func (s *SlowStore) Delete(ctx context.Context, l eventlog.Life) error {
	_, err := call(s, ctx, Delete, func() (struct{}, error) { return struct{}{}, s.Store.Delete(ctx, l) })
	return err
}

// draw gives a number from 1 to n, or 0 when pages come as they are.
func (s *SlowStore) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random == nil {
		return 0
	}
	return 1 + s.random.IntN(n)
}

// shorten lowers a limit to n. No limit is 0; a negative one, which the store refuses, stays; so does any when n is 0.
func shorten(limit, n int) int {
	if n > 0 && (limit == 0 || n < limit) {
		return n
	}
	return limit
}

func (s *SlowStore) count(appended, read int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Appended += appended
	s.counts.Read += read
}
