package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// flushBytes is about how many bytes of frames are gathered before they are sent: few enough to hold for each stream, and enough that writing them is not what takes the time.
const flushBytes = 64 << 10

// stream follows one session for one reader. It belongs to the goroutine of its request. The package comment tells the order of frames and why it holds.
type stream struct {
	*call
	session  *session.Session
	follower *follower
	frames   frames
	view     view
	// types are the event types that go out: nil is all, empty none.
	types []string
	// pos is the last event that was looked at: what goes out next is after it.
	pos int64
	// lost is closed when the session went cold although it is kept, or was deleted; release ends keeping it. again says that it was opened anew, so that what is
	// shown has to be compared.
	lost    <-chan struct{}
	release func()
	again   bool
	out     []byte
	beat    *time.Ticker
}

// errEnd ends a stream without an error.
var errEnd = errors.New("the stream ends")

func (c *call) streamSession() error {
	q := c.query("after", "events", "keys")
	from, types, keys := c.position(q), q.list("events"), q.list("keys")
	if len(types) == 1 && types[0] == "all" {
		types = nil
	}
	if len(types) == 1 && types[0] == "none" {
		types = []string{}
	}
	if q.err != nil {
		return q.err
	}
	if c.api.stopping() {
		return stopping()
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	f := c.api.hub.follow(s.ID(), true) // Before the first look, so that nothing falls between the two.
	defer f.leave()
	form := frames{s.ID(), s.Incarnation()}
	st := &stream{call: c, session: s, follower: f, frames: form, types: types, view: view{frames: form, keys: keys, shown: map[string]shown{}}}
	if st.lost, st.release, err = s.Keep(c.r.Context()); err != nil {
		return err
	}
	defer func() { st.release() }()
	info, err := s.Info(c.r.Context())
	if err != nil {
		return err
	}
	st.begin(http.StatusOK, "text/event-stream")
	if c.r.Method == http.MethodHead {
		return nil
	}
	st.beat = time.NewTicker(c.api.o.Heartbeat)
	defer st.beat.Stop()
	switch err := st.run(info.Seq-1, from); {
	case errors.Is(err, errEnd), c.r.Context().Err() != nil:
	case is[*eventlog.NotFoundError](err):
		st.out = st.frames.deleted(st.out)
		_ = st.flush()
	case is[*lateError](err):
		c.api.o.Logger.Info("api: a stream was closed because nobody reads it", "session", s.ID(), "error", err)
	default:
		return err
	}
	return nil
}

// begin overrides that of a call by what keeps proxies from holding frames back.
func (st *stream) begin(status int, kind string) {
	st.w.Header().Set("X-Accel-Buffering", "no")
	st.call.begin(status, kind)
}

// run is the whole stream: what was there up to a cut, then what comes.
func (st *stream) run(last int64, from position) error {
	ctx := st.r.Context()
	st.out = st.frames.subscribed(st.out, last, st.api.host.Epoch(), st.api.o.Heartbeat.Milliseconds())
	if err := st.flush(); err != nil {
		return err
	}
	// At least up to where the log reached a moment ago: what is committed may not be published yet.
	block, err := st.cut(ctx, last)
	if err != nil {
		return err
	}
	st.pos = last
	if reason := from.lost(st.session.Incarnation(), last); reason != "" {
		st.out = st.frames.reset(st.out, reason)
		st.pos = block.AsOfSeq
	} else if from.given {
		st.pos = from.seq
	}
	if err := st.pull(ctx, block.AsOfSeq+1); err != nil {
		return err
	}
	st.view.baseline(&block)
	st.out = st.frames.baseline(st.out, &block)
	for {
		// At the beginning too: the bell may have been heard while the cut was waited for.
		if err := st.round(ctx); err != nil {
			return err
		}
		if err := st.wait(ctx); err != nil {
			return err
		}
	}
}

// round sends what there is: first the events, then the values that they caused.
func (st *stream) round(ctx context.Context) error {
	// Values are taken before the log is read, so that the log has every event that they contain. What is newer by then is for the next round.
	changes, look := st.follower.take(st.session.Incarnation())
	var block registry.Block
	if look = look || st.again; look {
		var err error
		if block, err = st.cut(ctx, -1); err != nil {
			return err
		}
		st.again = false
	}
	if err := st.pull(ctx, 0); err != nil {
		return err
	}
	for i := range changes {
		st.out = st.view.change(st.out, &changes[i])
		if err := st.flushFull(); err != nil {
			return err
		}
	}
	if look {
		st.out = st.view.compare(st.out, &block)
	}
	return st.flush()
}

// wait returns when there may be something to send.
func (st *stream) wait(ctx context.Context) error {
	for {
		select {
		case <-st.follower.bell:
			return nil
		case <-st.lost:
			return st.reopen(ctx)
		case <-st.beat.C:
			st.out = append(st.out, ": still here\n\n"...)
			if err := st.flush(); err != nil {
				return err
			}
		case <-st.api.stopped:
			st.out = append(st.out, ": the server stops\n\n"...)
			_ = st.flush()
			return errEnd
		case <-ctx.Done():
			return errEnd
		}
	}
}

// reopen keeps the session again, which went cold although it was kept. It is the way to hear of a deletion as well.
func (st *stream) reopen(ctx context.Context) error {
	st.release()
	lost, release, err := st.session.Keep(ctx)
	if errors.Is(err, session.ErrClosed) {
		return errEnd
	}
	if err != nil {
		return err
	}
	st.lost, st.release, st.again = lost, release, true
	return nil
}

// cut is a snapshot that contains the event least.
func (st *stream) cut(ctx context.Context, least int64) (block registry.Block, err error) {
	for {
		err = st.api.host.Projections(ctx, st.session, func(rs *registry.Session) error {
			block, err = rs.SnapshotWithin(ctx, baselineWait, narrow(st.view.keys)...)
			return err
		})
		if errors.Is(err, session.ErrClosed) {
			return block, errEnd
		}
		if err != nil || block.AsOfSeq >= least {
			return block, err
		}
		// The event is about to be published, and whoever publishes it rings.
		if err := st.wait(ctx); err != nil {
			return block, err
		}
	}
}

// pull sends the events after pos up to and without to; 0 is the end that the log has when its first page is read, so that a log that
// grows faster than its reader reads does not keep values away from it.
func (st *stream) pull(ctx context.Context, to int64) error {
	if st.types != nil && len(st.types) == 0 {
		st.pos = max(st.pos, to-1)
		return nil
	}
	if to > 0 && st.pos+1 >= to {
		return nil
	}
	for {
		page, err := st.session.Read(ctx, st.pos+1, to, st.types)
		if err != nil {
			return err
		}
		for i := range page.Events {
			st.out = st.frames.event(st.out, &page.Events[i])
			if err := st.flushFull(); err != nil {
				return err
			}
		}
		if st.pos = max(st.pos, page.Next-1); page.Next >= page.End {
			return nil
		}
		to = page.End
	}
}

// flushFull sends frames when there are many.
func (st *stream) flushFull() error {
	if len(st.out) < flushBytes {
		return nil
	}
	return st.flush()
}

// lateError: the reader is gone, or did not take anything for too long.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// flush sends what is gathered.
func (st *stream) flush() error {
	if len(st.out) == 0 {
		return nil
	}
	err := st.write(st.out)
	if err == nil {
		err = st.conn.Flush()
	}
	if err != nil {
		return &lateError{err}
	}
	if st.out = st.out[:0]; cap(st.out) > 4*flushBytes {
		st.out = nil // One large frame is not to be paid for as long as the stream lasts.
	}
	st.beat.Reset(st.api.o.Heartbeat)
	return nil
}
