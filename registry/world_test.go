package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// world is a registry with one live session over a log in memory.
type world struct {
	t   testing.TB
	r   *Registry
	log *sampleLog
	*gatedLog
	s *Session
}

// given makes a world with these events in the log already; the rest is published as it is appended.
func given(t testing.TB, o Options, evs ...event.Event) *world {
	r := New(o)
	t.Cleanup(r.Close)
	w := &world{t: t, r: r, log: newSampleLog("s", evs...)}
	w.gatedLog = &gatedLog{sampleLog: w.log}
	w.attach(Rows{})
	return w
}

// attach makes the session live again, from rows.
func (w *world) attach(rows Rows) { w.s = w.r.Attach(w.gatedLog, "", w.log.head(), rows) }

// gatedLog answers reads only while the gate is open.
type gatedLog struct {
	*sampleLog
	gate atomic.Pointer[chan struct{}]
	// atGate counts the reads that have come to a gate that was shut.
	atGate atomic.Int32
}

func (l *gatedLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	if g := l.gate.Load(); g != nil {
		l.atGate.Add(1)
		select {
		case <-*g:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	return l.sampleLog.ReadPage(ctx, from, to, types)
}

// shut makes reads of the log wait until open is called.
func (w *world) shut() (open func()) {
	g := make(chan struct{})
	w.gate.Store(&g)
	return func() { w.gate.Store(nil); close(g) }
}

// append commits and publishes events of the types, with data that tells them apart.
func (w *world) append(types ...string) {
	evs := make([]event.Event, len(types))
	for i, typ := range types {
		seq := w.log.head() + 1 + int64(i)
		evs[i] = event.Event{Type: typ, Seq: seq, Data: json.RawMessage(fmt.Sprintf(`{"at":%d}`, seq))}
	}
	w.log.append(evs...)
	w.s.Publish(context.Background(), evs)
}

// data commits and publishes one event with this data.
func (w *world) data(typ, data string) {
	ev := event.Event{Type: typ, Seq: w.log.head() + 1, Data: json.RawMessage(data)}
	w.log.append(ev)
	w.s.Publish(context.Background(), []event.Event{ev})
}

func (w *world) register(plugin string, defs ...unit.Definition) []*Registration {
	w.t.Helper()
	var gs []*Registration
	for _, d := range defs {
		g, err := w.r.Register(Registrant{Plugin: plugin}, d)
		if err != nil {
			w.t.Fatalf("register %q: %v", d.Key, err)
		}
		gs = append(gs, g)
	}
	return gs
}

// fake makes a plugin that is closed after the registry.
func (w *world) fake(defs ...unit.Definition) *fakeplugin.Plugin {
	p := fakeplugin.New(defs...)
	w.t.Cleanup(func() {
		w.r.Close()
		p.Close()
	})
	return p
}

// plugin registers the units of a plugin process that a supervisor looks after: after each death the next process serves.
func (w *world) plugin(name string, defs ...unit.Definition) (*fakeplugin.Plugin, []*Registration) {
	w.t.Helper()
	p := w.fake(defs...)
	gs := w.register(name, p.Definitions()...)
	var mu sync.Mutex // a supervisor brings processes up one after the other
	p.OnDeath(func(*fakeplugin.Process) {
		mu.Lock()
		defer mu.Unlock()
		for _, g := range gs {
			g.Suspend(Restarting, "it crashed")
		}
		next := p.Start()
		for _, g := range gs {
			g.Resume(next)
		}
	})
	return p, gs
}

func (w *world) snapshot(keys ...string) Block {
	w.t.Helper()
	b, err := w.s.Snapshot(context.Background(), keys...)
	if err != nil {
		w.t.Fatalf("snapshot: %v", err)
	}
	return b
}

// values checks a whole snapshot against key, value pairs. A value "!code" is a key that is unavailable with that code.
func (w *world) values(seq int64, want ...string) Block {
	w.t.Helper()
	b := w.snapshot()
	if b.AsOfSeq != seq {
		w.t.Errorf("snapshot is as of %d, want %d", b.AsOfSeq, seq)
	}
	got := map[string]string{}
	for k, v := range b.Values {
		got[k] = string(v)
	}
	for k, u := range b.Unavailable {
		got[k] = "!" + string(u.Code)
	}
	for i := 0; i < len(want); i += 2 {
		if got[want[i]] != want[i+1] {
			w.t.Errorf("as of %d %s is %s, want %s (%+v)", b.AsOfSeq, want[i], got[want[i]], want[i+1], b.Unavailable)
		}
		delete(got, want[i])
	}
	for k, v := range got {
		w.t.Errorf("%s is there with %s, and should not be", k, v)
	}
	for k := range b.Values {
		if b.Revs[k] == 0 {
			w.t.Errorf("%s has no revision", k)
		}
	}
	return b
}

// ear is a listener that keeps what it heard.
type ear struct {
	mu    sync.Mutex
	heard []Change
}

func (w *world) listen() *ear {
	e := &ear{}
	w.t.Cleanup(w.r.OnChange(func(c Change) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, c)
	}))
	return e
}

// take gives what was heard since the last time, one line each.
func (e *ear) take() (lines []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.heard {
		lines = append(lines, line(c))
	}
	e.heard = nil
	return lines
}

func (e *ear) changes() []Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Change(nil), e.heard...)
}

func line(c Change) string {
	switch c.Kind {
	case KindValue:
		return fmt.Sprintf("%s %s@%d=%s", c.Session, c.Key, c.Seq, c.Value)
	case KindUnavailable:
		return fmt.Sprintf("%s %s@%d!%s", c.Session, c.Key, c.Seq, c.Unavailable.Code)
	case KindRemoved:
		return fmt.Sprintf("%s %s removed", c.Session, c.Key)
	case KindUnitAdded:
		return "added " + c.Key
	case KindUnitRemoved:
		return "gone " + c.Key
	case KindUnitReplaced:
		return "replaced " + c.Key
	}
	return "?"
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
