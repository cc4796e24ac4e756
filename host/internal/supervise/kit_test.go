package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one plugin that is kept up, over processes in memory and a registry of its own, on the clock of a synctest bubble.
type rig struct {
	*supervise.Plugin
	t        *testing.T
	deps     supervise.Deps
	registry *registry.Registry

	// What tests make the processes do.
	batch atomic.Pointer[error]
	sick  atomic.Bool

	mu        sync.Mutex
	processes []*lifetest.Process
	convicted int
}

// next says how the n-th process of a plugin behaves, counted from 0, or why it cannot be started.
type next func(n int) (*lifetest.Plugin, error)

// always is a plugin of which each process behaves the same.
func always(p lifetest.Plugin) next { return func(int) (*lifetest.Plugin, error) { return &p, nil } }

// good offers one unit that counts.
func good() next { return always(lifetest.Plugin{Units: []unit.Definition{number("n", nil)}}) }

// newRig makes a plugin and does not start it. When the test ends, it is stopped if it was started.
func newRig(t *testing.T, plugin next, change ...func(*life.Spec, *supervise.Deps)) *rig {
	t.Helper()
	r := &rig{t: t}
	r.registry = registry.New(registry.Options{BatchDeadline: time.Hour, Poisoned: func(registry.Registrant, string, string, int64) {
		r.mu.Lock()
		r.convicted++
		r.mu.Unlock()
		r.Forgive()
	}})
	r.deps = supervise.Deps{Registry: r.registry, Logger: slog.New(slog.DiscardHandler), Ledger: &supervise.Ledger{}, Files: &supervise.Files{}, Generation: &atomic.Uint64{},
		Changed: func() {}, Released: func() {}, Launch: func(ctx context.Context, s launch.Spec) (life.Process, error) {
			r.mu.Lock()
			n := len(r.processes)
			r.mu.Unlock()
			p, err := plugin(n)
			if err != nil {
				return nil, err
			}
			started := lifetest.Start(p, s)
			r.mu.Lock()
			r.processes = append(r.processes, started)
			r.mu.Unlock()
			return started, nil
		}}
	spec := life.Spec{Spec: launch.Spec{Plugin: "p", Path: "/nowhere/p"}}
	for _, c := range change {
		c(&spec, &r.deps)
	}
	r.Plugin = supervise.New(r.deps, registry.Registrant{Plugin: "p"}, spec)
	return r
}

// run starts the plugin, and stops it when the test ends.
func (r *rig) run() {
	r.Start()
	r.t.Cleanup(func() {
		r.Stop(context.Background())
		r.registry.Close()
		for i, p := range r.all() {
			if p.Alive() {
				r.t.Errorf("process %d lives", i)
			}
		}
	})
}

// started is a rig whose plugin was started, once nothing moves any more at that time.
func started(t *testing.T, plugin next, change ...func(*life.Spec, *supervise.Deps)) *rig {
	t.Helper()
	r := newRig(t, plugin, change...)
	r.run()
	synctest.Wait()
	return r
}

// all are the processes so far.
func (r *rig) all() []*lifetest.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*lifetest.Process(nil), r.processes...)
}

// last is the latest process.
func (r *rig) last() *lifetest.Process {
	all := r.all()
	return all[len(all)-1]
}

// die ends the latest process, and waits until nothing moves any more.
func (r *rig) die() {
	r.last().Die(3, "dying")
	synctest.Wait()
}

// is checks the state.
func (r *rig) is(want supervise.State, when string) supervise.Status {
	r.t.Helper()
	synctest.Wait()
	s := r.Status()
	if s.State != want {
		r.t.Fatalf("%s: it is %s (%s), want %s", when, s.State, s.LastError, want)
	}
	return s
}

// backsOff checks that it waits for its next start for one of the waits from least to most, and gives when it ends.
func (r *rig) backsOff(least, most time.Duration, when string) time.Time {
	r.t.Helper()
	s := r.is(supervise.Backoff, when)
	if wait := s.Until.Sub(s.Since); wait < least || wait > most || s.Reason == "" || s.Pid != 0 {
		r.t.Fatalf("%s: it waits for %v, wanted %v to %v: %+v", when, wait, least, most, s)
	}
	return s.Until
}

// session attaches a session with events of these types.
func (r *rig) session(id string, types ...string) *registry.Session {
	l := &memoryLog{id: id}
	for i, typ := range types {
		l.events = append(l.events, event.Event{Type: typ, Seq: int64(i), Data: json.RawMessage("1")})
	}
	return r.registry.Attach(l, "", int64(len(types))-1, registry.Rows{})
}

type memoryLog struct {
	id     string
	events []event.Event
}

func (l *memoryLog) ID() string          { return l.id }
func (l *memoryLog) Incarnation() string { return "1" }
func (l *memoryLog) ReadPage(_ context.Context, from, to int64, _ []string) ([]event.Event, int64, error) {
	to = min(to, int64(len(l.events)))
	return l.events[from:to], to, nil
}

// hangs waits in one call until the caller gives up.
func hangs(call string) func(context.Context, *lifetest.Process, string) error {
	return func(ctx context.Context, _ *lifetest.Process, c string) error {
		if c == call {
			return lifetest.Hang(ctx)
		}
		return nil
	}
}

// number is a unit that counts. poison is called at each "poison" event.
func number(key string, poison func()) unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: schema, ViewSchema: schema, Inline: counting{poison}}
}

type counting struct{ poison func() }

func (counting) Init() (unit.State, error) { return 0, nil }
func (c counting) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if ev.Type == "poison" && c.poison != nil {
		c.poison()
	}
	return s.(int) + 1, true, nil
}
func (counting) View(s unit.State) (json.RawMessage, error)   { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Decode(raw json.RawMessage) (unit.State, error) {
	n, ok := event.Integer(raw)
	if !ok {
		return nil, errors.New("it is no number")
	}
	return int(n), nil
}
