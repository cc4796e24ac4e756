package unit

import (
	"context"
	"sync"
)

// Local serves Inline folds behind the Instance contract: cells by opaque id, batches in order, on a goroutine of its own. It is
// how a plugin process keeps its cells, and how tests get an instance without a process.
//
// A batch whose context ends is answered with *DeadlineError at once, even while a fold hangs. It counts as not carried out:
// the cells that it names are dropped, so that a later batch cannot fold over the gap, and are Unknown until opened again.
//
// mu guards the queue. The cells belong to the goroutine alone.
type Local struct {
	bench *Bench
	// closing ends what the goroutine does, between two events.
	closing context.Context
	close   context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	queue  []*job
	closed bool
	wake   chan struct{}
}

// NewLocal returns an instance of these definitions, all of which must have an Inline. The error is a *DefinitionError. Close it.
func NewLocal(defs ...Definition) (*Local, error) {
	units := make(map[string]*Compiled, len(defs))
	for _, def := range defs {
		c, err := Compile(def)
		if err != nil {
			return nil, err
		}
		if c.Inline == nil {
			return nil, &DefinitionError{Key: c.Key, Rule: "fold", Reason: "Inline is not set; a local instance has nothing else to fold with"}
		}
		if units[c.Key] != nil {
			return nil, &DefinitionError{Key: c.Key, Rule: "key", Reason: "two definitions have this key; an instance serves each key once"}
		}
		units[c.Key] = c
	}
	l := &Local{
		bench:   NewBench(func(key string) *Compiled { return units[key] }),
		stopped: make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.closing, l.close = context.WithCancel(context.Background())
	go l.run()
	return l, nil
}

// Submit implements Instance. done is called on the instance's goroutine, which waits for it to return, or where the context
// ended or the instance was closed on one of its own.
func (l *Local) Submit(ctx context.Context, b Batch, done func(Reply)) {
	j := &job{ctx: ctx, batch: b, done: done}
	if ctx.Done() != nil {
		j.unwatch = context.AfterFunc(ctx, func() { j.answer(Reply{Err: late(ctx)}) })
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, j)
	}
	l.mu.Unlock()
	if closed {
		go j.finish(Reply{Err: errClosed()})
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close stops the goroutine, waits for it, and answers what is queued with *GoneError. It waits for the one call of a fold
// that is running. It must not be called from a done function. More than once is harmless.
func (l *Local) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.close()
	<-l.stopped
}

func (l *Local) run() {
	defer close(l.stopped)
	for {
		select {
		case <-l.wake:
		case <-l.closing.Done():
		}
		l.mu.Lock()
		jobs := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, j := range jobs {
			l.carryOut(j)
		}
		if l.closing.Err() != nil && len(jobs) == 0 {
			return
		}
	}
}

// carryOut answers one batch. Where somebody else has answered it meanwhile, or it was cut short, it counts as not carried out.
func (l *Local) carryOut(j *job) {
	reply, err := l.bench.CarryOut(&j.batch, func() error {
		if l.closing.Err() != nil {
			return errClosed()
		}
		if j.ctx.Err() != nil {
			return late(j.ctx)
		}
		return nil
	})
	if err != nil {
		reply = Reply{Err: err}
	}
	if !j.finish(reply) || err != nil {
		l.bench.Abandon(&j.batch)
	}
}

func errClosed() error { return &GoneError{Reason: "the instance was closed"} }

func late(ctx context.Context) error {
	return &DeadlineError{Reason: context.Cause(ctx).Error()}
}

// job is one submitted batch. It is answered once, by the goroutine or by the end of its context, whichever comes first.
type job struct {
	ctx     context.Context
	batch   Batch
	done    func(Reply)
	once    sync.Once
	unwatch func() bool
}

// finish answers and lets go of the context. It says whether the answer was this one.
func (j *job) finish(r Reply) bool {
	if j.unwatch != nil {
		j.unwatch()
	}
	return j.answer(r)
}

func (j *job) answer(r Reply) (first bool) {
	j.once.Do(func() {
		first = true
		j.done(r)
	})
	return first
}
