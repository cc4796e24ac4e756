package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/foldhost/foldhost/event"
)

// FromStart is the position before the first event.
const FromStart = "-1"

// Position is that behind an event, of whichever life of the session there is; −1 is from the start.
func Position(seq int64) string { return strconv.FormatInt(seq, 10) }

// StreamOptions say what to follow.
type StreamOptions struct {
	// After is where to begin: the Position of a frame that is known already, FromStart, or Position(seq). Empty is what comes from now on.
	After string
	// Events are the types of events to give, and Keys those whose values; nil is all, empty is none.
	Events, Keys []string
	// Broken, if not nil, hears why a connection ended and how long it is until the next try. It is called by the goroutine that reads.
	Broken func(err error, wait time.Duration)
	// Tries is how often in a row the connection may fail before the stream ends with the error. 0 is Options.Tries until there was one, and no end after that.
	Tries int
}

const (
	// connectTime is how long a server may take until its first frame. It waits for nothing before it.
	connectTime = 30 * time.Second
	// A server that has said nothing for twice its heartbeat and five seconds is taken for gone.
	silentBeats, silentMore = 2, 5 * time.Second
)

var errSilent = errors.New("nothing came any more, not even a heartbeat")

// Stream follows one session, from goroutine to goroutine of whoever ranges over it. A connection that ends is made again, with growing waits, behind the last event that was given: so
// no event comes twice and none is missing, and a new SubscribedFrame and BaselineFrame say that it happened. A reader that is slow gets every event, and of each value the latest.
//
// It ends with a DeletedFrame, also when the session turns out to have been deleted meanwhile; at ctx's end, with a *NetworkError around its error; and at an error that would come
// again, such as an *Error for a session that there is not.
func (c *Client) Stream(ctx context.Context, id string, o StreamOptions) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s := &stream{c: c, id: id, o: o, after: o.After, yield: yield}
		if err := s.run(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// stream is one that is being read. It belongs to the goroutine that reads.
type stream struct {
	c  *Client
	id string
	o  StreamOptions
	// after is the position of what was given last.
	after string
	// met says that there was a connection once, moved that the last one came further than the one before: with an event, or to its baseline.
	met, moved bool
	yield      func(Frame, error) bool
}

// run follows until there is nothing to follow any more.
func (s *stream) run(ctx context.Context) error {
	for failures := 1; ; failures++ {
		s.moved = false
		err := s.connect(ctx)
		if ctx.Err() != nil && !errors.Is(err, errEnough) {
			return &NetworkError{Doing: s.doing(), Err: context.Cause(ctx)}
		}
		if s.moved {
			failures = 1
		}
		if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeSessionNotFound && s.met {
			s.yield(&DeletedFrame{frame{s.id, fmt.Appendf(nil, `{"type":"session/deleted","sessionId":%s}`, event.AppendString(nil, s.id))}}, nil)
			return nil
		}
		tries := s.o.Tries
		if tries == 0 && !s.met {
			tries = s.c.o.Tries
		}
		if !passing(err) || tries > 0 && failures >= tries {
			return err
		}
		wait := waitAfter(err, failures)
		if s.o.Broken != nil {
			s.o.Broken(err, wait)
		}
		if pause(ctx, wait) != nil {
			return &NetworkError{Doing: s.doing(), Err: context.Cause(ctx)}
		}
	}
}

func (s *stream) doing() string { return fmt.Sprintf("follow session %q", s.id) }

// connect reads one connection to its end, which is never without an error.
func (s *stream) connect(ctx context.Context) error {
	r, err := onSession(http.MethodGet, "follow session %q", s.id, "/stream")
	if err != nil {
		return err
	}
	r.head("Accept", "text/event-stream")
	if s.after != "" {
		r.set("after", s.after)
	}
	if r.list("events", s.o.Events); s.o.Events != nil && len(s.o.Events) == 0 {
		r.set("events", "none")
	}
	r.list("keys", s.o.Keys)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := &watchdog{limit: connectTime, bite: func() { cancel(errSilent) }}
	silence.wake()
	res, err := s.c.send(ctx, r)
	silence.rest()
	if err != nil {
		return silent(ctx, r.doing, err)
	}
	defer res.Body.Close()
	silence.r = res.Body
	in := messages{lines: lineReader{r: bufio.NewReaderSize(silence, readBuffer), max: s.c.o.MaxFrameBytes}}
	for {
		m, err := in.next()
		if err == io.EOF {
			return &NetworkError{Doing: r.doing, Err: errors.New("the server ended the stream")}
		}
		if errors.Is(err, errTooLong) {
			return &AnswerError{Doing: r.doing, Err: err}
		}
		if err != nil {
			return silent(ctx, r.doing, &NetworkError{Doing: r.doing, Err: err})
		}
		f, err := readFrame(m)
		if err != nil {
			return &AnswerError{Doing: r.doing, Err: fmt.Errorf("a frame %q: %w", m.kind, err)}
		}
		if f == nil {
			continue
		}
		s.note(f, silence)
		if !s.yield(f, nil) {
			return errEnough
		}
		if _, gone := f.(*DeletedFrame); gone {
			return errEnough
		}
	}
}

// note takes from a frame where the stream stands.
func (s *stream) note(f Frame, silence *watchdog) {
	switch f := f.(type) {
	case *SubscribedFrame:
		s.met = true
		silence.limit = silentBeats*time.Duration(f.HeartbeatMs)*time.Millisecond + silentMore
		switch {
		case s.after == "": // "From now on" is from here on, also if this connection ends before it has said anything else.
			s.after = f.Incarnation + ":" + Position(f.LastSeq)
		case !strings.Contains(s.after, ":"): // A bare seq is of the life that there is now, and not of a later one.
			s.after = f.Incarnation + ":" + s.after
		}
	case *EventFrame:
		s.after, s.moved = f.Position, true
	case *BaselineFrame:
		s.after, s.moved = f.Position, true
	}
}

// silent says why a connection was given up, where it was.
func silent(ctx context.Context, doing string, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &NetworkError{Doing: doing, Err: errSilent}
	}
	return err
}

// watchdog ends a connection on which nothing comes. It watches while something is waited for, and not while the reader is busy. It belongs to one goroutine; bite is called
// by another.
type watchdog struct {
	r     io.Reader
	limit time.Duration
	bite  func()
	timer *time.Timer
}

func (w *watchdog) Read(p []byte) (int, error) {
	w.wake()
	defer w.rest()
	return w.r.Read(p)
}

func (w *watchdog) wake() { w.timer = time.AfterFunc(w.limit, w.bite) }
func (w *watchdog) rest() { w.timer.Stop() }
