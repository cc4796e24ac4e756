package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
	"github.com/foldhost/foldhost/unit"
)

// Unit is a unit under the name of its plugin.
type Unit struct {
	Plugin string
	unit.Definition
}

// ReplayOptions say how to replay a log.
type ReplayOptions struct {
	// Header and Events are the log, as a reader of the interchange format gives them. Events are pulled once and in order.
	Header event.Header
	Events iter.Seq2[event.Draft, error]
	// Units are folded over it. Only the function Replay looks at them; a Replayer has its own.
	Units []Unit
	// At ends the replay right after this seq: the rest of the log is not even read. −1 is the empty log, nil the whole.
	At *int64
	// Watch hears of the events and their changes in order; nil for nobody.
	Watch Watcher
	// Progress hears up to which seq of how many events the units are folded, from time to time and not when there is a Watch; nil for nobody.
	Progress func(reached, events int64)
	// Logger is for those who look for what the result does not say; nil discards. Only the function Replay looks at it.
	Logger *slog.Logger
}

// Watcher follows a replay, on the goroutine of Replay. An error ends it.
type Watcher interface {
	// Accepted is called first: the log is sound and has this many events.
	Accepted(h event.Header, events int64) error
	// Event is called for each event with the changes that it caused, sorted by key.
	Event(ev *event.Event, changes []ReplayChange) error
}

// NotReachedError: the log ends before the seq that a replay was to stop at.
type NotReachedError struct {
	// Want is the seq asked for, Seq the log's last, −1 when it is empty.
	Want, Seq int64
}

func (e *NotReachedError) Error() string {
	return fmt.Sprintf("the log ends at seq %d, before %d: ask for a seq up to %d", e.Seq, e.Want, e.Seq)
}

// Replay replays one log with o.Units and no plugin processes. See Replayer.Replay.
func Replay(ctx context.Context, o ReplayOptions) (*Result, error) {
	r, err := NewReplayer(ReplayerOptions{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, u := range o.Units {
		if err := r.Register(u); err != nil {
			return nil, err
		}
	}
	return r.Replay(ctx, o)
}

// quiet is a logger that discards where there is none: results and errors say what has to be said.
func quiet(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// prefix is the events up to and with seq at, and a refusal of a log that ends before it.
func prefix(events iter.Seq2[event.Draft, error], at *int64) iter.Seq2[event.Draft, error] {
	if at == nil {
		return events
	}
	return func(yield func(event.Draft, error) bool) {
		next := int64(0)
		if next <= *at {
			for d, err := range events {
				if !yield(d, err) || err != nil {
					return
				}
				// Counted by position: acceptance proves that seqs are positions.
				if next++; next > *at {
					return
				}
			}
		}
		if next <= *at {
			yield(event.Draft{}, &NotReachedError{Want: *at, Seq: next - 1})
		}
	}
}

// replay is one accepted log on its way to a result.
type replay struct {
	ctx     context.Context
	host    *Host
	session *session.Session
	turn    turn
	// header is the log's own: the session goes by another id. set is the set of plugins that folds it.
	header   event.Header
	set      string
	store    eventlog.Store
	watch    Watcher
	progress func(reached, events int64)
	result   Result
}

func (r *replay) run() (*Result, error) {
	if err := r.turn.take(r.ctx, shared); err != nil {
		return nil, err
	}
	defer r.turn.leave()
	info, err := r.session.Info(r.ctx)
	if err != nil {
		return nil, err
	}
	r.result.Header, r.result.Events = r.header, info.Seq
	if r.watch != nil {
		if err := r.watch.Accepted(r.result.Header, info.Seq); err != nil {
			return nil, err
		}
	}
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"folding the units", r.changes},
		{"taking the snapshot", r.values},
		{"folding the surface", r.surface},
		{"looking for an open turn", r.closers},
	} {
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	return &r.result, nil
}

// changes pulls every change and tells the watcher, event by event. Where a process dies, the watcher waits until it is known what the keys
// concerned come to, and so does the order of the changes.
func (r *replay) changes() error {
	tell, stop := r.teller()
	defer stop()
	rs, down := r.host.driver.of(lifeOf(r.session)), map[string]registry.Unavailable{}
	err := r.pull(0, r.reached(), nil, down, func(c registry.Change) error {
		r.add(c)
		if len(passing(down)) > 0 {
			return nil
		}
		return tell(c.Seq - 1)
	})
	if err != nil {
		return err
	}
	if len(passing(down)) > 0 {
		// What was given of a key is right up to where it went down: the rest of it is asked for.
		got := map[string]int64{}
		for key, u := range down {
			got[key] = u.Seq
		}
		err := r.again(down, func(keys []string) error {
			from := r.result.Events
			for _, key := range keys {
				delete(down, key)
				from = min(from, got[key]+1)
			}
			err := r.pull(from, nil, keys, down, func(c registry.Change) error {
				if c.Seq > got[c.Key] {
					r.add(c)
				}
				return nil
			})
			offered := rs.Keys()
			for _, key := range keys {
				if !slices.Contains(offered, key) {
					down[key] = notOffered
				}
				if u, is := down[key]; is {
					u.Seq = max(u.Seq, got[key])
					down[key], got[key] = u, u.Seq
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.SortStableFunc(r.result.Changes, func(a, b ReplayChange) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Key, b.Key))
		})
	}
	if len(down) > 0 {
		r.result.Unavailable = down
	}
	return tell(r.result.Events - 1)
}

// pull gives the changes of some keys from a seq on, all for nil, to take, and puts what failed into down.
func (r *replay) pull(from int64, progress func(reached, head int64), keys []string, down map[string]registry.Unavailable, take func(registry.Change) error) error {
	for c, err := range r.host.driver.of(lifeOf(r.session)).ChangesProgress(r.ctx, from, progress, keys...) {
		switch {
		case err != nil:
			return err
		case c.Kind == registry.KindUnavailable:
			down[c.Key] = *c.Unavailable
		case c.Kind == registry.KindValue:
			if err := take(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// teller gives a function that tells the watcher the events up to a seq that it was not told yet, with their changes, which must be there.
func (r *replay) teller() (tell func(through int64) error, stop func()) {
	if r.watch == nil {
		return func(int64) error { return nil }, func() {}
	}
	next, stop := iter.Pull2(r.scan(nil))
	at := int64(-1)
	return func(through int64) error {
		for at < through {
			ev, err, more := next()
			if err != nil || !more {
				return err
			}
			n := 0
			for n < len(r.result.Changes) && r.result.Changes[n].Seq <= ev.Seq {
				n++
			}
			if err := r.watch.Event(&ev, r.result.Changes[:n:n]); err != nil {
				return err
			}
			r.result.Changes = r.result.Changes[n:] // told, and so of no more use: all of them may be larger than the log
			at = ev.Seq
		}
		return nil
	}, stop
}

// reached passes progress on.
func (r *replay) reached() func(reached, head int64) {
	if r.progress == nil || r.watch != nil {
		return nil
	}
	return func(reached, head int64) { r.progress(reached, head+1) }
}

func (r *replay) add(c registry.Change) {
	r.result.Changes = append(r.result.Changes, ReplayChange{Key: c.Key, Seq: c.Seq, Value: c.Value})
}

// notOffered is a key that was there when the replay began.
var notOffered = registry.Unavailable{Code: registry.Parked, Seq: -1, Message: "the plugin does not offer the unit any more"}

// values takes one snapshot at the end, of the keys that did not fail on the way: what is known to end a process is not asked for again.
// There is no deadline but the caller's: nobody waits for a replay who cannot cancel it.
func (r *replay) values() error {
	const noDeadline = 1000 * time.Hour
	r.result.AsOfSeq, r.result.Values = r.result.Events-1, map[string]json.RawMessage{}
	rs := r.host.driver.of(lifeOf(r.session))
	var sound []string
	for _, key := range rs.Keys() {
		if _, failed := r.result.Unavailable[key]; !failed {
			sound = append(sound, key)
		}
	}
	down := map[string]registry.Unavailable{}
	ask := func(keys []string) error {
		if len(keys) == 0 {
			return nil // No key would be every key.
		}
		block, err := rs.SnapshotWithin(r.ctx, noDeadline, keys...)
		if err != nil {
			return err
		}
		for _, key := range keys {
			delete(down, key)
			if v, is := block.Values[key]; is {
				r.result.Values[key] = v
			} else if u, is := block.Unavailable[key]; is {
				down[key] = u
			} else {
				down[key] = notOffered
			}
		}
		return nil
	}
	if err := ask(sound); err != nil {
		return err
	}
	if err := r.again(down, ask); err != nil {
		return err
	}
	for key, u := range down {
		if r.result.Unavailable == nil {
			r.result.Unavailable = map[string]registry.Unavailable{}
		}
		r.result.Unavailable[key] = u
	}
	return nil
}

// surface reads the events that can be on the surface once more, for what the session does not keep: the history of replacements, and
// who said each message.
func (r *replay) surface() error {
	state, err := r.session.Surface().State(r.ctx)
	if err != nil {
		return err
	}
	r.result.Surface = surface.State{Nodes: state.Nodes, ReplaceGeneration: state.ReplaceGeneration}
	m := surface.NewManager(0, func(seq int64) (event.Event, error) { return r.event(seq) })
	said := map[int64]Message{}
	for ev, err := range r.scan([]string{event.UserMessage, event.AssistantMessage, event.ToolResult}) {
		if err != nil {
			return err
		}
		m.Advance(ev.Seq)
		if ev.Op.Kind == event.OpReplace {
			shadowed, err := m.Range(ev.Op.Start, ev.Op.End)
			if err != nil {
				return err
			}
			r.result.Surface.Replacements = append(r.result.Surface.Replacements,
				surface.Replacement{Seq: ev.Seq, Start: ev.Op.Start, End: ev.Op.End, ShadowedSeqs: append([]int64(nil), shadowed...)})
			for _, seq := range shadowed {
				delete(said, seq)
			}
		}
		plan, err := m.Plan(&event.Draft{Event: ev})
		if err != nil {
			return err
		}
		m.Apply(plan)
		if msg := event.MessageOf(&ev); msg != nil {
			said[ev.Seq] = Message{ID: clone(event.Lookup(msg, "id")), Role: clone(event.Lookup(msg, "role"))}
		}
	}
	for _, seq := range state.Nodes {
		if msg, ok := said[seq]; ok {
			r.result.Messages = append(r.result.Messages, msg)
		}
	}
	return nil
}

// clone lets go of the event that the value is a part of.
func clone(raw json.RawMessage) json.RawMessage { return append(json.RawMessage(nil), raw...) }

func (r *replay) closers() error {
	var last *event.Event
	if n := r.result.Events; n > 0 {
		ev, err := r.event(n - 1)
		if err != nil {
			return err
		}
		last = &ev
	}
	events, err := session.Closers(r.scan(session.CloserTypes()), last)
	if err != nil {
		return err
	}
	for _, ev := range events {
		r.result.Closers = append(r.result.Closers, ev.Type)
	}
	return nil
}

// scan reads the log's events of some types, nil for all.
func (r *replay) scan(types []string) iter.Seq2[event.Event, error] {
	return eventlog.Scan(r.ctx, r.store, eventlog.Query{Life: eventlog.Life{ID: r.session.ID()}, Types: types})
}

// event reads one event.
func (r *replay) event(seq int64) (event.Event, error) {
	page, err := r.store.Read(r.ctx, eventlog.Query{Life: eventlog.Life{ID: r.session.ID()}, From: seq, To: seq + 1})
	if err != nil {
		return event.Event{}, err
	}
	if len(page.Events) == 0 {
		return event.Event{}, errors.New("the spool lost an event that it took") // Cannot be: the spool is ours alone.
	}
	return page.Events[0], nil
}
