package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Options of an instance.
type Options struct {
	// Stream is the process's fold stream, and Cancel ends it.
	Stream pluginproto.Plugin_FoldClient
	Cancel context.CancelFunc
	// Generation names the process.
	Generation uint64
	// Deadline bounds the answer to one batch, from when it is sent. 0 is 10 s.
	Deadline time.Duration
	// Broken is called once, when the instance ends and nobody closed it, before what is in flight is answered: the process is of no more use. busy
	// says that it had something to do. It must not block.
	Broken func(why error, busy bool)
	// Obituary says why the process is gone, once it is known; it may wait a moment for that. It is asked when the stream breaks.
	Obituary func() string
	// Held leaves what is submitted where it is until Begin.
	Held bool
}

// defaultDeadline is that of the registry: a batch of 512 events takes a millisecond or two, and one that takes 10,000 times as long is not coming.
const defaultDeadline = 10 * time.Second

// Instance is one life of a plugin process as the registry sees it.
type Instance struct {
	o      Options
	window window
	wg     sync.WaitGroup
	// wake tells the sender that something changed. One place: it looks at everything.
	wake chan struct{}

	mu sync.Mutex
	// queue is what was submitted and not sent, in order; bounded by the registry's window for each session.
	queue []*job
	// flights are the messages that wait for their answer, by batch number.
	flights map[uint64]*flight
	// sent are the jobs with a message in flight.
	sent int
	next uint64
	// unanswered counts the jobs whose done has not returned, late ones too; silent is told when there are none.
	unanswered int
	silent     *sync.Cond
	// watchdog runs while there are flights.
	watchdog *time.Timer
	watching bool
	held     bool
	gone     *unit.GoneError
}

// job is one submitted batch.
type job struct {
	batch   unit.Batch
	done    func(unit.Reply)
	unwatch func() bool
	// The rest is guarded by Instance.mu: replies to its parts, how many are missing, whether somebody answered it, whether the deadline of
	// whoever submitted it has passed.
	replies  []unit.Reply
	missing  int
	answered bool
	overdue  bool
	sentAt   time.Time
}

// flight is one message in flight: a job, or a part of one that is too large for a message.
type flight struct {
	job    *job
	part   int
	answer *foldwire.Answer
	due    time.Time
}

// New starts the two goroutines. The stream is the instance's from now on. Close it, then Wait.
func New(o Options) *Instance {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	in := &Instance{o: o, wake: make(chan struct{}, 1), flights: map[uint64]*flight{}, window: newWindow(o.Deadline), held: o.Held}
	in.silent = sync.NewCond(&in.mu)
	in.wg.Go(in.send)
	in.wg.Go(in.receive)
	return in
}

// Begin sends what was submitted to an instance that was held, and from then on what is submitted. More than once is harmless.
func (in *Instance) Begin() {
	in.mu.Lock()
	in.held = false
	in.mu.Unlock()
	in.ring()
}

// Submit implements unit.Instance. A batch waits for its turn while the plugin keeps answering others; its deadline counts from when
// it is sent, since that the plugin is busy is no reason to call it dead.
//
// The end of ctx by cancelling answers it at once. A deadline of ctx covers the wait too: when it passes, the instance fails, because whoever set
// it takes the process for dead from then on, and nothing would be asked of it any more. Where cells are only dropped nobody waits for the answer,
// and the end of ctx says nothing.
func (in *Instance) Submit(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	j := &job{batch: b, done: done}
	if ctx.Done() != nil && len(b.Open)+len(b.Cells)+len(b.States) > 0 {
		j.unwatch = context.AfterFunc(ctx, func() { in.expire(ctx, j) })
	}
	in.mu.Lock()
	in.unanswered++
	gone := in.gone
	if gone == nil {
		in.queue = append(in.queue, j)
	}
	in.mu.Unlock()
	if gone != nil {
		go in.settle(j, unit.Reply{Err: gone})
		return
	}
	in.ring()
}

// expire deals with a batch whose context has ended.
func (in *Instance) expire(ctx context.Context, j *job) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		in.settle(j, unit.Reply{Err: &unit.DeadlineError{Reason: context.Cause(ctx).Error()}})
		return
	}
	in.mu.Lock()
	j.overdue = !j.answered
	overdue := j.overdue
	in.mu.Unlock()
	if overdue {
		in.Fail(&unit.DeadlineError{Reason: "a batch of events was not answered within the time that it was given, its wait for others included"})
	}
}

// Close ends the instance because that is wanted: Broken is not called. Everything in flight is answered with a *unit.GoneError before it returns.
// More than once is harmless.
func (in *Instance) Close(reason string) { in.end(&unit.GoneError{Reason: reason}, false) }

// Fail ends the instance for a reason that was found elsewhere, such as the end of its process. Broken is called, unless the instance has
// ended before.
func (in *Instance) Fail(why error) { in.end(why, true) }

// Wait waits for the goroutines, and until everything that was submitted before is answered. The instance has ended then.
func (in *Instance) Wait() {
	in.wg.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.unanswered > 0 {
		in.silent.Wait()
	}
}

func (in *Instance) ring() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// settle answers a job unless it was answered.
func (in *Instance) settle(j *job, r unit.Reply) {
	in.mu.Lock()
	first := !j.answered
	j.answered = true
	in.mu.Unlock()
	if !first {
		return
	}
	if j.unwatch != nil {
		j.unwatch()
	}
	j.done(r)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.unanswered--; in.unanswered == 0 {
		in.silent.Broadcast()
	}
}

// end answers everything. The batches that took too long get a *unit.DeadlineError, where that is the reason; the others are lost with the
// process.
func (in *Instance) end(why error, own bool) {
	in.mu.Lock()
	if in.gone != nil {
		in.mu.Unlock()
		return
	}
	gone := &unit.GoneError{Reason: why.Error()}
	if already := (*unit.GoneError)(nil); errors.As(why, &already) {
		gone = already
	}
	in.gone = gone
	var late *unit.DeadlineError
	errors.As(why, &late)
	now := time.Now()
	open := slices.Clone(in.queue)
	for _, f := range in.flights {
		f.job.overdue = f.job.overdue || !now.Before(f.due)
		open = append(open, f.job)
	}
	var overdue, lost []*job
	for _, j := range open {
		if late != nil && j.overdue {
			overdue = append(overdue, j)
		} else {
			lost = append(lost, j)
		}
	}
	in.queue, in.flights = nil, map[uint64]*flight{}
	if in.watchdog != nil {
		in.watchdog.Stop()
	}
	in.mu.Unlock()
	in.o.Cancel()
	in.ring()
	if own && in.o.Broken != nil {
		in.o.Broken(why, len(open) > 0)
	}
	for _, j := range overdue {
		in.settle(j, unit.Reply{Err: late})
	}
	for _, j := range lost {
		in.settle(j, unit.Reply{Err: gone})
	}
}
