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
	// After is where to begin: the Position of a frame that is known already, FromStart, or Position(seq). Empty is what comes from now on. For Follow it is where those sessions begin that
	// say nothing themselves.
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
	connectTime = 10 * time.Second
	// A server that has said nothing for twice its heartbeat and five seconds is taken for gone.
	silentBeats, silentMore = 2, 5 * time.Second
	// mostBeatMs is the longest heartbeat that is believed, a day: twice that is still a time that there is.
	mostBeatMs = 24 * 60 * 60 * 1000
)

var errSilent = errors.New("nothing came any more, not even a heartbeat")

// Stream follows one session, from goroutine to goroutine of whoever ranges over it. A connection that ends is made again, with growing waits, behind the last event that was given: so
// no event comes twice and none is missing, and a new SubscribedFrame and BaselineFrame say that it happened. A reader that is slow gets every event, and of each value the latest.
//
// It ends with a DeletedFrame, also when the session turns out to have been deleted meanwhile; at ctx's end, with a *NetworkError around its error; and at an error that would come
// again, such as an *Error for a session that there is not.
func (c *Client) Stream(ctx context.Context, id string, o StreamOptions) iter.Seq2[Frame, error] {
	return c.frames(ctx, o, func() course { return &single{id: id, o: o, place: place{after: o.After}} })
}

// frames reads a stream, anew for each range over it.
func (c *Client) frames(ctx context.Context, o StreamOptions, begin func() course) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s := &stream{c: c, o: o, course: begin(), yield: yield}
		if err := s.run(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// course is what is followed, and where it stands.
type course interface {
	doing() string
	// request is how to go on from there.
	request() (*request, error)
	// note takes from a frame where the stream stands. It gives the frame to pass on; moved says that it came further, with an event or to a baseline, and over that nothing follows.
	note(f Frame) (pass Frame, moved, over bool)
	// last gives a frame that ends the stream in place of an error of the server, if there is one.
	last(e *Error) Frame
}

// place is where one session stands.
type place struct {
	// after is the position of what was given last, and incarnation the life that was met last.
	after, incarnation string
}

// note takes from a frame of the session where it stands. Positions are those of the session, whichever stream it comes on.
func (p *place) note(f Frame) (moved bool) {
	switch f := f.(type) {
	case *SubscribedFrame:
		p.incarnation = f.Incarnation
		switch {
		case p.after == "": // "From now on" is from here on, also if this connection ends before it has said anything else.
			p.after = p.position(f.LastSeq)
		case !strings.Contains(p.after, ":"): // A bare seq is of the life that there is now, and not of a later one.
			p.after = f.Incarnation + ":" + p.after
		}
	case *EventFrame:
		f.Position = p.position(f.Event.Seq)
		p.after, moved = f.Position, true
	case *BaselineFrame:
		f.Position = p.position(f.Block.AsOfSeq)
		p.after, moved = f.Position, true
	}
	return moved
}

func (p *place) position(seq int64) string { return p.incarnation + ":" + Position(seq) }

// deleted says of a session that it is not there any more, where the server does not.
func deleted(id string) *DeletedFrame {
	return &DeletedFrame{frame{id, fmt.Appendf(nil, `{"type":"session/deleted","sessionId":%s}`, event.AppendString(nil, id))}}
}

// single is the course of one session.
type single struct {
	id string
	o  StreamOptions
	place
}

func (s *single) doing() string { return fmt.Sprintf("follow session %q", s.id) }

func (s *single) request() (*request, error) {
	r, err := onSession(http.MethodGet, "follow session %q", s.id, "/stream")
	if err != nil {
		return nil, err
	}
	if s.after != "" {
		r.set("after", s.after)
	}
	if r.list("events", s.o.Events); s.o.Events != nil && len(s.o.Events) == 0 {
		r.set("events", "none")
	}
	r.list("keys", s.o.Keys)
	return r, nil
}

func (s *single) note(f Frame) (pass Frame, moved, over bool) {
	_, over = f.(*DeletedFrame)
	return f, s.place.note(f), over
}

func (s *single) last(e *Error) Frame {
	if e.Code == CodeSessionNotFound && s.incarnation != "" {
		return deleted(s.id)
	}
	return nil
}

// stream is one that is being read. It belongs to the goroutine that reads.
type stream struct {
	c      *Client
	o      StreamOptions
	course course
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
			return &NetworkError{Doing: s.course.doing(), Err: context.Cause(ctx)}
		}
		if s.moved {
			failures = 1
		}
		if e, ok := errors.AsType[*Error](err); ok {
			if f := s.course.last(e); f != nil {
				s.yield(f, nil)
				return nil
			}
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
			return &NetworkError{Doing: s.course.doing(), Err: context.Cause(ctx)}
		}
	}
}

// connect reads one connection to its end, which is never without an error.
func (s *stream) connect(ctx context.Context) error {
	r, err := s.course.request()
	if err != nil {
		return err
	}
	r.head("Accept", "text/event-stream")
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
		if sub, is := f.(*SubscribedFrame); is {
			s.met = true
			silence.limit = silentBeats*time.Duration(max(0, min(sub.HeartbeatMs, mostBeatMs)))*time.Millisecond + silentMore
		}
		f, moved, over := s.course.note(f)
		s.moved = s.moved || moved
		if f != nil && !s.yield(f, nil) || over {
			return errEnough
		}
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
