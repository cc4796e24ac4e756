package remote

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// send is the goroutine that writes to the stream. Sending waits where the plugin does not read; nothing is locked meanwhile, and the end
// of the instance ends the waiting.
func (in *Instance) send() {
	for {
		j, ended := in.take()
		if ended {
			return
		}
		if j == nil {
			<-in.wake
			continue
		}
		if err := tooLarge(&j.batch); err != nil {
			in.abandon(j, err)
			continue
		}
		for i, part := range in.parts(j) {
			m := in.launch(j, i, &part)
			if m == nil {
				return
			}
			if err := in.o.Stream.Send(m); err != nil {
				// The stream's own error is what Recv says; this one only says that there is one.
				if !errors.Is(err, io.EOF) {
					in.Fail(broken(err))
				}
				return
			}
		}
	}
}

// take gives the next job, nil when nothing may be sent now.
func (in *Instance) take() (j *job, ended bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		switch {
		case in.gone != nil:
			return nil, true
		case in.held || len(in.queue) == 0 || in.sent >= in.window.size:
			return nil, false
		}
		j = in.queue[0]
		in.queue[0] = nil
		if in.queue = in.queue[1:]; len(in.queue) == 0 {
			in.queue = nil
		}
		// One that nobody waits for any more is sent all the same where it drops cells, or they would stay.
		if !j.answered || len(j.batch.Drop) > 0 {
			if j.answered {
				j.batch = unit.Batch{Drop: j.batch.Drop, Through: -1}
			}
			in.sent++
			j.sentAt = time.Now()
			return j, false
		}
	}
}

// parts cuts a job into what fits a message each.
func (in *Instance) parts(j *job) []unit.Batch {
	parts := slices.Collect(foldwire.Split(&j.batch))
	in.mu.Lock()
	j.replies, j.missing = make([]unit.Reply, len(parts)), len(parts)
	in.mu.Unlock()
	return parts
}

// launch notes that a message is on its way; nil when the instance has ended.
func (in *Instance) launch(j *job, part int, b *unit.Batch) *pluginproto.FoldBatch {
	answer := foldwire.NewAnswer(b)
	in.mu.Lock()
	if in.gone != nil {
		in.mu.Unlock()
		in.settle(j, unit.Reply{Err: in.gone})
		return nil
	}
	in.next++
	number := in.next
	in.flights[number] = &flight{job: j, part: part, answer: answer, due: time.Now().Add(in.o.Deadline)}
	in.watch(in.o.Deadline)
	in.mu.Unlock()
	return foldwire.Batch(b, number, in.o.Generation)
}

// abandon answers a job that is never sent.
func (in *Instance) abandon(j *job, err error) {
	in.mu.Lock()
	in.sent--
	in.mu.Unlock()
	in.settle(j, unit.Reply{Err: err})
}

// tooLarge says what no message can carry.
func tooLarge(b *unit.Batch) error {
	for i := range b.Open {
		if o := &b.Open[i]; !foldwire.OpenFits(o) {
			return fmt.Errorf("the state of key %q has %d bytes; no message to a plugin carries more than %d", o.Key, len(o.State), pluginproto.MaxMessageBytes)
		}
	}
	for i := range b.Events {
		if e := &b.Events[i]; !foldwire.EventFits(e) {
			return fmt.Errorf("event %d has %d bytes; no message to a plugin carries more than %d", e.Seq, len(e.Data), pluginproto.MaxMessageBytes)
		}
	}
	return nil
}

// watch makes sure that the watchdog looks within d. mu is held.
func (in *Instance) watch(d time.Duration) {
	switch {
	case in.watching:
		return
	case in.watchdog == nil:
		in.watchdog = time.AfterFunc(d, in.bark)
	default:
		in.watchdog.Reset(d)
	}
	in.watching = true
}

// bark looks for a message that was not answered in time. One timer serves all: it is set to the oldest, and looks again when that was
// answered meanwhile.
func (in *Instance) bark() {
	in.mu.Lock()
	in.watching = false
	var oldest time.Time
	for _, f := range in.flights {
		if oldest.IsZero() || f.due.Before(oldest) {
			oldest = f.due
		}
	}
	wait := time.Until(oldest)
	if !oldest.IsZero() && wait > 0 {
		in.watch(wait)
	}
	in.mu.Unlock()
	if !oldest.IsZero() && wait <= 0 {
		in.Fail(&unit.DeadlineError{Reason: fmt.Sprintf("a batch of events was not answered within %v", in.o.Deadline)})
	}
}

// BrokenError is a plugin that broke the protocol.
type BrokenError struct {
	Reason string
	// Err is what was found, a *foldwire.ProtocolError where a message was read.
	Err error
}

func (e *BrokenError) Error() string { return "the plugin broke the protocol: " + e.Reason }
func (e *BrokenError) Unwrap() error { return e.Err }

// broken makes the reason of a stream's error; nil when all that it says is that the process is gone.
func broken(err error) error {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		return &BrokenError{Reason: fmt.Sprintf("it sent a message larger than %d bytes", pluginproto.MaxMessageBytes), Err: err}
	case codes.Internal:
		return &BrokenError{Reason: "it sent a message that cannot be read: " + status.Convert(err).Message(), Err: err}
	case codes.Unimplemented:
		return &BrokenError{Reason: "it has no fold stream", Err: err}
	}
	if status.Code(err) == codes.Unavailable { // In the words of the network, which names sockets.
		return &unit.GoneError{Reason: "the connection to it broke"}
	}
	return &unit.GoneError{Reason: "its fold stream ended: " + status.Convert(err).Message()}
}
