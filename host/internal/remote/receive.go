package remote

import (
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// receive is the goroutine that reads from the stream.
func (in *Instance) receive() {
	for {
		m, err := in.o.Stream.Recv()
		if err == nil {
			if err = in.hear(m); err != nil {
				in.Fail(err)
				return
			}
			continue
		}
		in.Fail(in.ended(err))
		return
	}
}

// ended says why the stream broke. That the process ended explains everything else.
func (in *Instance) ended(err error) error {
	switch code := status.Code(err); {
	case errors.Is(err, io.EOF):
		if why := in.obituary(); why != "" {
			return &unit.GoneError{Reason: why}
		}
		return &BrokenError{Reason: "it ended its fold stream", Err: err}
	case code == codes.Unavailable || code == codes.Canceled || code == codes.Unknown:
		if why := in.obituary(); why != "" {
			return &unit.GoneError{Reason: why}
		}
	}
	return broken(err)
}

func (in *Instance) obituary() string {
	if in.o.Obituary == nil {
		return ""
	}
	return in.o.Obituary()
}

// hear takes one message. The error is a *BrokenError, and nothing that the message says was acted upon.
func (in *Instance) hear(m *pluginproto.FoldReply) error {
	if m.Generation != in.o.Generation {
		return &BrokenError{Reason: fmt.Sprintf("it answered as generation %d and is %d", m.Generation, in.o.Generation)}
	}
	in.mu.Lock()
	f, ended := in.flights[m.Batch], in.gone != nil
	in.mu.Unlock()
	if ended {
		return nil
	}
	if f == nil {
		return &BrokenError{Reason: fmt.Sprintf("it answered batch %d, which it was never asked or had answered before", m.Batch)}
	}
	// The answer belongs to this goroutine alone.
	done, err := f.answer.Add(m)
	if err != nil {
		return &BrokenError{Reason: err.Error(), Err: err}
	}
	if !done {
		return nil
	}
	reply := f.answer.Reply()
	if reply.Err != nil {
		return &BrokenError{Reason: reply.Err.Error(), Err: reply.Err}
	}
	in.landed(m.Batch, f, reply)
	return nil
}

// landed takes the whole answer to one message, and answers the job with its last one.
func (in *Instance) landed(number uint64, f *flight, reply unit.Reply) {
	j := f.job
	in.mu.Lock()
	if in.gone != nil {
		in.mu.Unlock()
		return
	}
	delete(in.flights, number)
	j.replies[f.part] = reply
	j.missing--
	last := j.missing == 0
	waiting := false
	if last {
		in.sent--
		in.window.answered(time.Since(j.sentAt))
		waiting = len(in.queue) > 0
	}
	in.mu.Unlock()
	if !last {
		return
	}
	if waiting {
		in.ring()
	}
	in.settle(j, foldwire.MergeParts(j.batch.Mode, j.replies))
}
