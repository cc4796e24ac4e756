package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// flushBytes is about how many bytes of frames are gathered before they are sent: few enough to hold for each stream, and enough that writing them is not what takes the time.
const flushBytes = 64 << 10

// pageBytes is how much of a log is read at once for a reader who may be slow: 256 KiB, which are as many events of the usual size as a page has at most. One event is read whatever its size.
const pageBytes = 256 << 10

// stream follows sessions for one reader. It belongs to the goroutine of its request. The package comment tells the order of frames and why it holds.
type stream struct {
	*call
	parts []*part
	// bell is that of all followers.
	bell chan struct{}
	// types are the event types that go out: nil is all, empty none.
	types []string
	// many is how the events of many sessions are put in a row; nil on a stream of one, whose log is in order.
	many *row
	// out is what is gathered; nil while nothing is, so that a stream that waits holds no memory for it.
	out []byte
	// sent is when something was sent last, until the deadline that the connection has for writing.
	sent, until time.Time
	// beat sets due and rings when nothing may have been sent for a heartbeat.
	beat *time.Timer
	due  atomic.Bool
	// places are what wait waits for.
	places []reflect.SelectCase
}

// part is one session of a stream.
type part struct {
	session  *session.Session
	follower *follower
	frames   frames
	view     view
	// last is where the log ended when it was looked at first, and reset why it does not have the position that was asked for.
	last  int64
	reset string
	// pos is the last event that was looked at: what goes out next is after it.
	pos int64
	// block is the baseline until it was sent, and later what is compared.
	block registry.Block
	based bool
	// lost is closed when the session went cold although it is kept, or was deleted; release ends keeping it. again says that it was opened anew, so that what is
	// shown has to be compared.
	lost    <-chan struct{}
	release func()
	again   bool
	gone    bool
	// changes are taken and not sent yet; look says that what is shown has to be compared with block.
	changes []*stamped
	look    bool
	// shared are events that others send too and that this stream is about to.
	shared []*sharedEvent
	// events are read and not sent, with their commit positions on a stream of many. Once reading has begun, next is where it goes on and end where it stops.
	events    []event.Event
	positions []int64
	begun     bool
	next, end int64
}

// errEnd ends a stream without an error.
var errEnd = errors.New("the stream ends")

func (c *call) streamSession() error {
	st, err := c.beginStream()
	if err != nil {
		return err
	}
	defer st.leave()
	return st.serve(nil)
}

// beginStream makes the stream that a request asks for. It is not a part of streamSession so that what it puts on the stack does not stay there as long as the stream lasts.
func (c *call) beginStream() (*stream, error) {
	q := c.query("after", "events", "keys")
	from, types, keys := c.position(q), eventTypes(q.list("events")), q.list("keys")
	if q.err != nil {
		return nil, q.err
	}
	if c.api.stopping() {
		return nil, stopping()
	}
	st := &stream{call: c, types: types, bell: newBell()}
	p, info, err := st.join(c.r.PathValue("id"), keys)
	if err != nil {
		return nil, err
	}
	p.pos = p.last
	if p.reset = from.lost(info.Incarnation, p.last); p.reset == "" && from.given {
		p.pos = from.seq
	}
	return st, nil
}

// eventTypes reads which events go out: nil is all, empty none.
func eventTypes(list []string) []string {
	if len(list) == 1 && list[0] == "all" {
		return nil
	}
	if len(list) == 1 && list[0] == "none" {
		return []string{}
	}
	return list
}

// silent says that no events go out.
func (st *stream) silent() bool { return st.types != nil && len(st.types) == 0 }

// join makes a session a part of the stream. It follows first, so that nothing falls between that and the first look.
func (st *stream) join(id string, keys []string) (*part, eventlog.Info, error) {
	ctx := st.r.Context()
	w := wants{values: true, events: !st.silent(), positions: st.many != nil}
	p := &part{follower: st.api.hub.follow(id, w, st.bell)}
	s, info, err := st.api.sessions.Find(ctx, id)
	if err == nil {
		p.lost, p.release, err = s.Keep(ctx)
	}
	if err == nil {
		info, err = s.Info(ctx)
	}
	if err != nil {
		p.leave()
		return nil, info, err
	}
	form := frames{s.ID(), s.Incarnation()}
	p.session, p.frames, p.last = s, form, info.Seq-1
	p.view = view{frames: form, keys: keys, shown: map[string]shown{}}
	st.parts = append(st.parts, p)
	return p, info, nil
}

// leave lets go of the session, once.
func (p *part) leave() {
	if p.gone {
		return
	}
	p.gone, p.lost, p.events, p.positions, p.changes, p.shared, p.block = true, nil, nil, nil, nil, nil, registry.Block{}
	p.follower.leave()
	if p.release != nil {
		p.release()
	}
}

func (st *stream) leave() {
	for _, p := range st.parts {
		p.leave()
	}
}

// serve answers with the stream, which begins with some frames.
func (st *stream) serve(first []byte) error {
	st.begin(http.StatusOK, "text/event-stream")
	if st.r.Method == http.MethodHead {
		return nil
	}
	st.api.served.opened.Add(1)
	st.api.served.streams.Add(1)
	defer st.api.served.streams.Add(-1)
	st.sent = time.Now()
	st.beat = time.AfterFunc(st.api.o.Heartbeat, func() {
		st.due.Store(true)
		ring(st.bell)
	})
	defer st.beat.Stop()
	st.out = first
	switch err := st.run(st.r.Context()); {
	case is[*lateError](err) && errors.Is(err, os.ErrDeadlineExceeded): // With which the context ends too.
		st.api.served.slow.Add(1)
		st.log().Info("a stream was closed because nobody reads it", "path", st.r.URL.Path, "error", err)
	case errors.Is(err, errEnd), errors.Is(err, session.ErrClosed), is[*lateError](err), st.r.Context().Err() != nil:
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
func (st *stream) run(ctx context.Context) error {
	for _, p := range st.parts {
		st.out = p.frames.subscribed(st.out, p.last, st.api.host.Epoch(), st.api.o.Heartbeat.Milliseconds())
		if p.reset != "" {
			st.out = p.frames.reset(st.out, p.reset)
		}
	}
	if err := st.flush(); err != nil {
		return err
	}
	for _, p := range st.parts {
		// At least up to where the log reached a moment ago: what is committed may not be published yet.
		if err := st.cut(ctx, p, p.last); err != nil {
			return err
		}
		if p.reset != "" {
			p.pos = p.block.AsOfSeq
		}
	}
	if err := st.pull(ctx); err != nil {
		return err
	}
	for _, p := range st.parts {
		if err := st.baseline(p); err != nil {
			return err
		}
	}
	for {
		// At the beginning too: the bell may have been heard while the cuts were waited for.
		if err := st.round(ctx); err != nil {
			return err
		}
		if err := st.wait(ctx); err != nil {
			return err
		}
	}
}

// baseline sends that of a session, once.
func (st *stream) baseline(p *part) (err error) {
	if p.based || p.gone {
		return nil
	}
	m := mark{p.frames.incarnation, p.block.AsOfSeq}
	if st.many != nil {
		m = st.many.mark(st.many.at)
	}
	p.view.baseline(&p.block)
	st.gather()
	// Large values go out as they are: they are shared with all who have them.
	st.out = p.frames.baseline(st.out, &p.block, m, func(dst, value []byte) []byte {
		if len(value) < largeBytes || err != nil {
			return append(dst, value...)
		}
		st.out = dst
		if err = st.put(value); err == nil {
			st.gather()
		}
		return st.out
	})
	p.based, p.block = true, registry.Block{}
	return err
}

// round sends what there is: first the events, then the values that they caused.
func (st *stream) round(ctx context.Context) error {
	// Values are taken before the logs are read, so that the logs have every event that they contain. What is newer by then is for the next round.
	quiet := true
	for _, p := range st.parts {
		if p.gone {
			continue
		}
		var events bool
		p.changes, events, p.look = p.follower.take(p.session.Incarnation())
		quiet = quiet && !events && !p.look && !p.again && len(p.changes) == 0
		if p.look = p.look || p.again; p.look {
			p.again = false
			if err := st.cut(ctx, p, -1); err != nil {
				return err
			}
		}
	}
	// The logs were read to their ends after what was published before was counted, so what is committed and not sent is still to be published: it rings.
	if !quiet {
		if err := st.pull(ctx); err != nil {
			return err
		}
	}
	for _, p := range st.parts {
		if p.gone {
			continue
		}
		for _, c := range p.changes {
			if !p.view.news(&c.Change) {
				continue
			}
			if err := st.put(c.frame(p.frames)); err != nil {
				return err
			}
		}
		if p.look {
			st.gather()
			st.out = p.view.compare(st.out, &p.block)
		}
		p.changes, p.look, p.block = nil, false, registry.Block{}
	}
	if err := st.flush(); err != nil {
		return err
	}
	if st.parts = slices.DeleteFunc(st.parts, func(p *part) bool { return p.gone }); len(st.parts) == 0 {
		return errEnd
	}
	return nil
}

// without goes on without a session that an error says is not there any more, or, on a stream of more than it, cannot be read. Other errors are those of the stream.
func (st *stream) without(p *part, err error) error {
	if p.gone {
		return nil
	}
	switch {
	case err == nil:
		return nil
	case is[*eventlog.NotFoundError](err):
		st.out = p.frames.deleted(st.out)
	case is[*eventlog.CorruptError](err) && slices.ContainsFunc(st.parts, func(o *part) bool { return o != p && !o.gone }):
		st.damaged(p.frames.session, err)
		st.out = p.frames.reset(st.out, resetDamaged)
	default:
		return err
	}
	p.leave()
	return nil
}

// damaged logs that a session is left out of a stream, which is told no more than that.
func (c *call) damaged(id string, err error) {
	c.api.o.Logger.Error("a stream of many sessions goes on without one that is damaged", "session", id, "error", err)
}

// Places of reflect.Select; from lost on they are those of the parts.
const (
	placeBell = iota
	placeDone
	placeLost
)

// wait returns when there may be something to send. The bell is for all that is not of one request or one session: what they share would be locked by all streams that wait for it.
func (st *stream) wait(ctx context.Context) error {
	if st.api.stopping() {
		st.out = append(st.out, ": the server stops\n\n"...)
		_ = st.flush()
		return errEnd
	}
	switch i := st.hear(ctx); i {
	case placeBell:
		if st.due.Swap(false) {
			return st.heartbeat()
		}
		return nil
	case placeDone:
		return errEnd
	default:
		p := st.parts[i-placeLost]
		return st.without(p, p.reopen(ctx))
	}
}

// heartbeat sends a comment if nothing else was sent for so long.
func (st *stream) heartbeat() error {
	every := st.api.o.Heartbeat
	if quiet := time.Since(st.sent); quiet < every {
		st.beat.Reset(every - quiet)
		return nil
	}
	st.gather()
	st.out = append(st.out, ": still here\n\n"...)
	if err := st.flush(); err != nil {
		return err
	}
	st.beat.Reset(every)
	for _, p := range st.parts {
		p.follower.rest(every)
	}
	return nil
}

// hear waits until something happens, and says what.
func (st *stream) hear(ctx context.Context) (place int) {
	if len(st.parts) == 1 { // As most have.
		select {
		case <-st.bell:
			return placeBell
		case <-ctx.Done():
			return placeDone
		case <-st.parts[0].lost:
			return placeLost
		}
	}
	return st.hearMany(ctx)
}

// hearMany is hear on a stream of many sessions.
func (st *stream) hearMany(ctx context.Context) (place int) {
	st.places = append(st.places[:0], receive(st.bell), receive(ctx.Done()))
	for _, p := range st.parts {
		st.places = append(st.places, receive(p.lost))
	}
	place, _, _ = reflect.Select(st.places)
	return place
}

// receive is a place of reflect.Select; what is nil is never ready.
func receive[T any](c <-chan T) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
}

// reopen keeps the session again, which went cold although it was kept. It is the way to hear of a deletion as well.
func (p *part) reopen(ctx context.Context) error {
	p.release()
	lost, release, err := p.session.Keep(ctx)
	if err != nil {
		return err
	}
	p.lost, p.release, p.again = lost, release, true
	return nil
}

// cut takes a snapshot that contains the event least.
func (st *stream) cut(ctx context.Context, p *part, least int64) error {
	for !p.gone {
		err := st.api.host.Projections(ctx, p.session, func(rs *registry.Session) (err error) {
			p.block, err = rs.SnapshotWithin(ctx, baselineWait, narrow(p.view.keys)...)
			return err
		})
		if err != nil || p.block.AsOfSeq >= least {
			return st.without(p, err)
		}
		// The event is about to be published, and whoever publishes it rings.
		if err := st.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pull sends the events after the places of the parts, up to the ends that their logs have when it begins, so that a log that grows faster than its reader reads does not keep
// values away from it. Before the first event beyond its cut a session has its baseline.
func (st *stream) pull(ctx context.Context) error {
	if done, err := st.pullShared(ctx); done || err != nil {
		return err
	}
	end := int64(math.MaxInt64)
	if st.many != nil {
		var err error
		// Every event up to here is seen by the reads that follow, so none can come later that belongs before one that is sent.
		if _, end, err = st.api.sessions.End(ctx); err != nil {
			return err
		}
	}
	for !st.silent() {
		var first *part
		least := end
		for _, p := range st.parts {
			if err := st.fill(ctx, p); err != nil {
				return err
			}
			if len(p.events) == 0 {
				continue
			}
			if st.many == nil {
				first = p
			} else if at := p.positions[0]; at <= least {
				first, least = p, at
			}
		}
		if first == nil {
			break
		}
		if err := st.send(first); err != nil {
			return err
		}
	}
	for _, p := range st.parts {
		p.events, p.positions, p.begun = nil, nil, false
	}
	if st.many != nil {
		st.many.at, st.many.whole = end, min(st.many.whole, end)
	}
	return nil
}

// pullShared is pull where the end of the log is at hand, which other streams send too.
func (st *stream) pullShared(ctx context.Context) (done bool, err error) {
	if st.many != nil {
		return st.pullPlaced(ctx)
	}
	if st.silent() {
		return false, nil
	}
	p := st.parts[0]
	// A stream that begins, or has reason to look again, reads the log.
	if p.gone || !p.based || p.look {
		return false, nil
	}
	// What is taken of values may be of events that are about to be published.
	least := p.pos
	for _, c := range p.changes {
		least = max(least, c.Seq)
	}
	events, ok := p.follower.recent(p.frames.incarnation, p.pos, least)
	if !ok {
		return false, nil
	}
	for _, e := range events {
		p.pos = e.seq
		if st.types != nil && !slices.Contains(st.types, e.kind) {
			continue
		}
		if err := st.put(e.frame(p.frames)); err != nil {
			return true, err
		}
	}
	return true, nil
}

// send sends the next event of a session.
func (st *stream) send(p *part) error {
	ev := &p.events[0]
	if !p.based && ev.Seq > p.block.AsOfSeq {
		if err := st.baseline(p); err != nil {
			return err
		}
	}
	m := mark{p.frames.incarnation, ev.Seq}
	if st.many != nil {
		st.many.at = p.positions[0]
		m = st.many.mark(st.many.at)
		p.positions = p.positions[1:]
	}
	one := *ev
	p.pos, p.events = ev.Seq, p.events[1:]
	*ev = event.Event{} // A slow reader may hold the rest for long.
	if len(one.Data) >= largeBytes && m.life != "" {
		e := p.follower.lend(&one, m)
		defer p.follower.takeBack(e)
		one = event.Event{}
		return st.put(e.frame(p.frames))
	}
	st.gather()
	st.out = p.frames.event(st.out, &one, m)
	one = event.Event{} // It is in the frame.
	return st.flushFull()
}

// fill reads on when nothing that was read is left.
func (st *stream) fill(ctx context.Context, p *part) error {
	for !p.gone && len(p.events) == 0 {
		q := eventlog.Query{Types: st.types, MaxBytes: pageBytes, Positions: st.many != nil}
		if p.begun {
			if p.pos = max(p.pos, p.next-1); p.next >= p.end {
				return nil
			}
			q.To = p.end
		}
		q.From = p.pos + 1
		page, err := p.session.Page(ctx, q)
		if err != nil {
			if err = st.without(p, err); err != nil {
				return err
			}
			continue
		}
		p.events, p.positions, p.next = page.Events, page.Positions, page.Next
		if !p.begun {
			p.begun, p.end = true, page.End
		}
	}
	return nil
}

// largeBytes is from how many bytes on what others send too is not copied to what is gathered.
const largeBytes = flushBytes / 4

// put sends a frame that others send too, and so is not copied when it is large.
func (st *stream) put(frame []byte) error {
	if len(frame) < largeBytes {
		st.gather()
		st.out = append(st.out, frame...)
		return st.flushFull()
	}
	if err := st.flush(); err != nil {
		return err
	}
	return st.push(frame)
}

// buffers are those of streams that have nothing to send: most have, and wait.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// gather begins gathering.
func (st *stream) gather() {
	if st.out == nil {
		st.out = *buffers.Get().(*[]byte)
	}
}

// flushFull sends frames when there are many.
func (st *stream) flushFull() error {
	if len(st.out) < flushBytes {
		return nil
	}
	return st.flush()
}

// flush sends what is gathered.
func (st *stream) flush() error {
	var err error
	if len(st.out) > 0 {
		err = st.push(st.out)
	}
	if n := cap(st.out); n > 0 && n <= 4*flushBytes { // One large frame is not to be paid for any longer.
		out := st.out[:0]
		buffers.Put(&out)
	}
	st.out = nil
	return err
}

// lateError: the reader is gone, or did not take anything for too long.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// push sends bytes at once. The deadline is moved now and then and not each time, which costs as much as all else that is done to send a frame: so a reader that takes nothing is given up
// after WriteTimeout, or an eighth later.
func (st *stream) push(bytes []byte) error {
	err := inPieces(bytes, func(piece []byte) error {
		st.sent = time.Now()
		if most := st.api.o.WriteTimeout; st.until.Sub(st.sent) < most {
			st.until = st.sent.Add(most + most/8)
			st.conn.SetWriteDeadline(st.until) // A writer that has none is in memory, and takes all.
		}
		_, err := st.w.Write(piece)
		return err
	})
	if err == nil {
		err = st.conn.Flush()
	}
	if err != nil {
		return &lateError{err}
	}
	return nil
}
