package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// flushBytes is about how many bytes of frames are gathered before they are sent: few enough to hold for each stream, and enough that writing them is not what takes the time.
const flushBytes = 64 << 10

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
	out  []byte
	beat *time.Ticker
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
	// events are read and not sent, with their commit positions on a stream of many. Once reading has begun, next is where it goes on and end where it stops.
	events    []event.Event
	positions []int64
	begun     bool
	next, end int64
}

// errEnd ends a stream without an error.
var errEnd = errors.New("the stream ends")

func (c *call) streamSession() error {
	q := c.query("after", "events", "keys")
	from, types, keys := c.position(q), eventTypes(q.list("events")), q.list("keys")
	if q.err != nil {
		return q.err
	}
	if c.api.stopping() {
		return stopping()
	}
	st := &stream{call: c, types: types, bell: newBell()}
	defer st.leave()
	p, info, err := st.join(c.r.PathValue("id"), keys)
	if err != nil {
		return err
	}
	p.pos = p.last
	if p.reset = from.lost(info.Incarnation, p.last); p.reset == "" && from.given {
		p.pos = from.seq
	}
	return st.serve(nil)
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

// join makes a session a part of the stream. It follows first, so that nothing falls between that and the first look.
func (st *stream) join(id string, keys []string) (*part, eventlog.Info, error) {
	ctx := st.r.Context()
	p := &part{follower: st.api.hub.follow(id, true, st.bell)}
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
	p.gone, p.lost, p.events, p.positions, p.block = true, nil, nil, nil, registry.Block{}
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
	st.beat = time.NewTicker(st.api.o.Heartbeat)
	defer st.beat.Stop()
	st.out = first
	switch err := st.run(st.r.Context()); {
	case errors.Is(err, errEnd), errors.Is(err, session.ErrClosed), st.r.Context().Err() != nil:
	case is[*lateError](err):
		st.api.o.Logger.Info("api: a stream was closed because nobody reads it", "path", st.r.URL.Path, "error", err)
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
		st.baseline(p)
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
func (st *stream) baseline(p *part) {
	if p.based || p.gone {
		return
	}
	m := mark{p.frames.incarnation, p.block.AsOfSeq}
	if st.many != nil {
		m = st.many.mark(st.many.at)
	}
	p.view.baseline(&p.block)
	st.out = p.frames.baseline(st.out, &p.block, m)
	p.based, p.block = true, registry.Block{}
}

// round sends what there is: first the events, then the values that they caused.
func (st *stream) round(ctx context.Context) error {
	// Values are taken before the logs are read, so that the logs have every event that they contain. What is newer by then is for the next round.
	type news struct {
		changes []registry.Change
		look    bool
	}
	all := make([]news, len(st.parts))
	for i, p := range st.parts {
		if p.gone {
			continue
		}
		n := &all[i]
		n.changes, n.look = p.follower.take(p.session.Incarnation())
		if n.look = n.look || p.again; n.look {
			p.again = false
			if err := st.cut(ctx, p, -1); err != nil {
				return err
			}
		}
	}
	if err := st.pull(ctx); err != nil {
		return err
	}
	for i, p := range st.parts {
		if p.gone {
			continue
		}
		for k := range all[i].changes {
			st.out = p.view.change(st.out, &all[i].changes[k])
			if err := st.flushFull(); err != nil {
				return err
			}
		}
		if all[i].look {
			st.out = p.view.compare(st.out, &p.block)
			p.block = registry.Block{}
		}
	}
	if err := st.flush(); err != nil {
		return err
	}
	if st.parts = slices.DeleteFunc(st.parts, func(p *part) bool { return p.gone }); len(st.parts) == 0 {
		return errEnd
	}
	return nil
}

// without goes on without a session that an error says is not there any more. Other errors are those of the stream.
func (st *stream) without(p *part, err error) error {
	if !is[*eventlog.NotFoundError](err) {
		return err
	}
	if !p.gone {
		st.out = p.frames.deleted(st.out)
		p.leave()
	}
	return nil
}

// wait returns when there may be something to send.
func (st *stream) wait(ctx context.Context) error {
	const bell, beat, stopped, done, lost = 0, 1, 2, 3, 4
	st.places = append(st.places[:0], receive(st.bell), receive(st.beat.C), receive(st.api.stopped), receive(ctx.Done()))
	for _, p := range st.parts {
		st.places = append(st.places, receive(p.lost))
	}
	for {
		switch i, _, _ := reflect.Select(st.places); i {
		case bell:
			return nil
		case beat:
			st.out = append(st.out, ": still here\n\n"...)
			if err := st.flush(); err != nil {
				return err
			}
		case stopped:
			st.out = append(st.out, ": the server stops\n\n"...)
			_ = st.flush()
			return errEnd
		case done:
			return errEnd
		default:
			p := st.parts[i-lost]
			return st.without(p, p.reopen(ctx))
		}
	}
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
	end := int64(math.MaxInt64)
	if st.many != nil {
		var err error
		// Every event up to here is seen by the reads that follow, so none can come later that belongs before one that is sent.
		if _, end, err = st.api.sessions.End(ctx); err != nil {
			return err
		}
	}
	for none := st.types != nil && len(st.types) == 0; !none; {
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

// send sends the next event of a session.
func (st *stream) send(p *part) error {
	ev := &p.events[0]
	if !p.based && ev.Seq > p.block.AsOfSeq {
		st.baseline(p)
	}
	m := mark{p.frames.incarnation, ev.Seq}
	if st.many != nil {
		st.many.at = p.positions[0]
		m = st.many.mark(st.many.at)
		p.positions = p.positions[1:]
	}
	st.out = p.frames.event(st.out, ev, m)
	p.pos, p.events = ev.Seq, p.events[1:]
	return st.flushFull()
}

// fill reads on when nothing that was read is left.
func (st *stream) fill(ctx context.Context, p *part) error {
	for !p.gone && len(p.events) == 0 {
		q := eventlog.Query{Types: st.types}
		if p.begun {
			if p.pos = max(p.pos, p.next-1); p.next >= p.end {
				return nil
			}
			q.To = p.end
		}
		q.From = p.pos + 1
		if st.many != nil {
			q.Positions, q.MaxBytes = true, rowBytes
		}
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
