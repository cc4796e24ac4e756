// Package fakeplugin is a test double of a plugin process: units that are folded by Inline code behind the unit.Instance
// contract, which can be slow, hang, crash, come back and lie in every way that a real process can.
//
// A Plugin is what a supervisor sees: it starts processes one after the other, each a generation with cells of its own.
// A Process is what a registry sees. Faults are added to the plugin and outlive its processes; each counts how often it
// fired, so that a test can prove that what it is about did happen.
//
// Only tests import it. All types are safe for concurrent use; Plugin.mu guards everything that has no guard of its own.
package fakeplugin

import (
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Plugin is one plugin over all of its processes.
type Plugin struct {
	defs map[string]unit.Definition
	keys []string

	mu      sync.Mutex
	now     *Process
	all     []*Process
	faults  []*Fault
	counts  Counts
	record  []Message
	onDeath func(*Process)
	closed  bool

	wg sync.WaitGroup
}

// New returns a plugin of these definitions, all of which have an Inline, with its first process running.
func New(defs ...unit.Definition) *Plugin {
	p := &Plugin{defs: make(map[string]unit.Definition, len(defs)), counts: Counts{Types: map[string]int{}}}
	for _, d := range defs {
		if d.Inline == nil {
			panic("fakeplugin: definition " + d.Key + " has no Inline")
		}
		p.defs[d.Key] = d
		p.keys = append(p.keys, d.Key)
	}
	p.Start()
	return p
}

// Definitions gives the units as the plugin offers them now: with the present process in place of the Inline.
func (p *Plugin) Definitions() []unit.Definition {
	in := p.Process()
	out := make([]unit.Definition, 0, len(p.keys))
	for _, k := range p.keys {
		d := p.defs[k]
		d.Inline, d.Instance = nil, in
		out = append(out, d)
	}
	return out
}

// Definition is the one of Definitions with the key.
func (p *Plugin) Definition(key string) unit.Definition {
	d, ok := p.defs[key]
	if !ok {
		panic("fakeplugin: no unit " + key)
	}
	d.Inline, d.Instance = nil, p.Process()
	return d
}

// Process is the present process, alive or dead.
func (p *Plugin) Process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Start starts the next process, which knows no cell. The one before it is left alone: crash it first, or have two. After Close
// it is born dead.
func (p *Plugin) Start() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	pr := &Process{
		plugin: p,
		gen:    len(p.all) + 1,
		cells:  map[unit.CellID]*cell{},
		dead:   make(chan struct{}),
	}
	pr.ready = sync.NewCond(&pr.mu)
	p.now = pr
	if p.closed {
		pr.gone = &unit.GoneError{Reason: "closed"}
		close(pr.dead)
		return pr
	}
	p.all = append(p.all, pr)
	p.wg.Go(pr.run)
	return pr
}

// Crash ends the present process: every batch in flight and every later one is answered by *unit.GoneError.
func (p *Plugin) Crash() { p.Process().Crash("crashed by the test") }

// OnDeath sets what is called, on a goroutine of its own, after a process has died and its batches are answered: the
// place for a supervisor's Suspend, Start and Resume. Not called by Close.
func (p *Plugin) OnDeath(f func(*Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onDeath = f
}

// Close ends every process and waits for all goroutines of the plugin.
func (p *Plugin) Close() {
	p.mu.Lock()
	p.onDeath, p.closed = nil, true
	all := p.all
	p.mu.Unlock()
	for _, pr := range all {
		pr.Crash("closed")
	}
	p.wg.Wait()
}

// Counts says what the plugin has received, over all processes.
type Counts struct {
	// Batches are messages down; Answers are messages up, those of dead processes included.
	Batches, Answers int
	// Events are events as they came in batches, Types the same by type, Applied the calls of Apply.
	Events, Applied int
	Types           map[string]int
	// Opened and Dropped are cells; Deaths are processes.
	Opened, Dropped, Deaths int
}

// Counts gives a copy.
func (p *Plugin) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Types = make(map[string]int, len(p.counts.Types))
	for k, v := range p.counts.Types {
		c.Types[k] = v
	}
	return c
}

// Message is one batch as one process received it.
type Message struct {
	Gen   int
	Batch unit.Batch
}

// Messages gives every batch received so far, in order.
func (p *Plugin) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.record...)
}

// Forget makes counters and the record start over; faults keep their counts.
func (p *Plugin) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts, p.record = Counts{Types: map[string]int{}}, nil
}

func (p *Plugin) received(gen int, b unit.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Batches++
	p.counts.Events += len(b.Events)
	for i := range b.Events {
		p.counts.Types[b.Events[i].Type]++
	}
	p.counts.Opened += len(b.Open)
	p.counts.Dropped += len(b.Drop)
	p.record = append(p.record, Message{Gen: gen, Batch: b})
}

func (p *Plugin) count(f func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.counts)
}

// fault gives the first fault that is due at the site, counted as fired.
func (p *Plugin) fault(s Site) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.due(s) {
			f.fired++
			return f
		}
	}
	return nil
}

// Site is where a process is in its work when faults are looked up. What does not belong to the place is zero.
type Site struct {
	Place Place
	// Gen counts processes from 1.
	Gen   int
	Batch *unit.Batch
	// Cell and Key are set at AtOpen, AtEvent and for View, Event at AtEvent.
	Cell  unit.CellID
	Key   string
	Event *event.Event
}
