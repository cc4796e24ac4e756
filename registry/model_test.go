package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
	"pgregory.net/rapid"
)

// The state machine: everything that can happen to a registry happens to this one in random order, and after each step all that it
// serves is compared with a model that folds the log from scratch. Time is synctest's, and each step runs until nothing moves, so that a
// failure shrinks.
func TestARegistryServesTheFoldOfThePrefixWhateverHappens(t *testing.T) {
	tally := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(notT{t}, func(rt *rapid.T) {
			m := newMachine(rt, tally)
			defer m.close()
			rt.Repeat(map[string]func(*rapid.T){
				"":           m.check,
				"append":     m.append,
				"append2":    m.append, // what happens most
				"register":   m.register,
				"register2":  m.register,
				"release":    m.release,
				"replace":    m.replace,
				"upgrade":    m.upgrade,
				"handOver":   m.handOver,
				"members":    m.members,
				"checkpoint": m.checkpoint,
				"detach":     m.detach,
				"attach":     m.attach,
				"kill":       m.kill,
				"ambush":     m.ambush,
				"hold":       m.hold,
				"letGo":      m.letGo,
				"suspend":    m.suspend,
				"resume":     m.resume,
				"retry":      m.retry,
				"past":       m.past,
				"pull":       m.pull,
				"cold":       m.cold,
			})
		})
	})
	t.Logf("%v", tally)
	if testing.Short() {
		return // too few steps to ask for everything
	}
	for _, what := range []string{"death", "hang", "crash at an event", "held", "takeover", "conflict", "replaced", "other version", "seeded by rows", "faulted", "pulled", "restored", "behind"} {
		if tally[what] == 0 {
			t.Errorf("%q never happened: the machine proves less than it says", what)
		}
	}
}

// notT keeps rapid from asking a test in a bubble for its deadline, which is not allowed there.
type notT struct{ *testing.T }

const (
	modelDeadline = 50 * time.Millisecond // of a batch
	modelWait     = 5 * time.Millisecond  // of a snapshot
)

var modelTypes = []string{"a", "a", "b", "b", "noise", "noise", "bad"}

type machine struct {
	t *rapid.T
	r *Registry
	// mu guards what a supervisor's goroutine shares with the machine: tally, holds, and which process is the present one.
	mu    sync.Mutex
	tally map[string]int
	// plugins by name; "here" registers units of this process.
	plugins map[string]*supervisor
	excused map[string]bool
	// holds are what is registered, in order of arrival.
	holds []*holding
	sets  map[string][]Registrant
	live  []*modelSession
	// clients is what somebody knows who listens to the feed, by session and key.
	clients map[place]Change
	feed    []Change
	remove  func()
}

// holding is one registration.
type holding struct {
	by  string
	def unit.Definition // with its Inline
	reg *Registration
}

type modelSession struct {
	set  string
	log  *sampleLog
	s    *Session
	rows []Rows
}

// supervisor restarts the processes of one plugin, and kills those that miss a deadline.
type supervisor struct {
	m       *machine
	name    string
	p       *fakeplugin.Plugin
	in      *supervised
	down    bool
	ambush  *fakeplugin.Fault
	hold    *fakeplugin.Fault
	release chan struct{}
}

type supervised struct {
	*fakeplugin.Process
	m *machine
}

func (s *supervised) Submit(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	s.Process.Submit(ctx, b, func(r unit.Reply) {
		done(r)
		var late *unit.DeadlineError
		if errors.As(r.Err, &late) {
			s.Crash("it missed a deadline")
		}
	})
}

// picky is Last that fails on events of type bad.
func picky(key string) unit.Definition {
	d := fakeplugin.Last(key, "a", "bad")
	f := d.Inline.(fakeplugin.Fold)
	f.On = func(_ string, ev *event.Event) (string, error) {
		if ev.Type == "bad" {
			return "", errors.New("this one is bad")
		}
		return string(ev.Data), nil
	}
	d.Inline = f
	return d
}

// modelUnits are what each plugin may offer. chain is offered by all, each shows who computes it; count has two versions that differ.
func modelUnits(plugin string) []unit.Definition {
	return []unit.Definition{
		fakeplugin.Prefixed("shared", plugin, "a", "b"),
		fakeplugin.Version(fakeplugin.Chain("chain", "b"), 1),
		fakeplugin.Version(fakeplugin.Counter("chain", "a", "b"), 2),
		fakeplugin.Chain(plugin + "/all"),
		picky(plugin + "/picky"),
		fakeplugin.HostOnly(fakeplugin.Counter(plugin+"/hidden", "a")),
		fakeplugin.Constant(plugin+"/constant", `"`+plugin+`"`),
	}
}

func newMachine(t *rapid.T, tally map[string]int) *machine {
	m := &machine{t: t, tally: tally, plugins: map[string]*supervisor{}, sets: map[string][]Registrant{}, clients: map[place]Change{}}
	m.r = New(Options{BatchEvents: 3, BatchDeadline: modelDeadline, ReadWait: modelWait, ScratchWait: 10 * modelDeadline})
	m.remove = m.r.OnChange(func(c Change) { m.feed = append(m.feed, c) })
	for _, name := range []string{"here", "p", "q"} {
		sv := &supervisor{m: m, name: name}
		if name != "here" {
			// A process serves one definition of a key; the two versions of chain live in two.
			defs := slices.DeleteFunc(modelUnits(name), func(d unit.Definition) bool { return d.StateVersion == 2 })
			sv.p = fakeplugin.New(defs...)
			sv.in = &supervised{sv.p.Process(), m}
			sv.p.OnDeath(func(*fakeplugin.Process) { sv.restart() })
		}
		m.plugins[name] = sv
	}
	for i := range 2 {
		s := &modelSession{set: []string{"", "named"}[i], log: newSampleLog(fmt.Sprintf("s%d", i))}
		s.s = m.r.Attach(s.log, s.set, -1, Rows{})
		m.live = append(m.live, s)
	}
	return m
}

func (m *machine) close() {
	m.remove()
	m.r.Close()
	for _, sv := range m.plugins {
		if sv.p != nil {
			sv.p.Close()
		}
	}
	synctest.Wait()
}

func (m *machine) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tally[what]++
}

func (sv *supervisor) regs() (regs []*Registration) {
	sv.m.mu.Lock()
	defer sv.m.mu.Unlock()
	for _, h := range sv.m.holds {
		if h.by == sv.name {
			regs = append(regs, h.reg)
		}
	}
	return regs
}

// restart runs on the plugin's goroutine, while the machine waits for everything to come to rest.
func (sv *supervisor) restart() {
	sv.m.count("death")
	for _, g := range sv.regs() {
		g.Suspend(Restarting, "it died")
	}
	if in, down := sv.start(); !down {
		for _, g := range sv.regs() {
			g.Resume(in)
		}
	}
}

func (sv *supervisor) start() (in *supervised, down bool) {
	sv.m.mu.Lock()
	defer sv.m.mu.Unlock()
	sv.in = &supervised{sv.p.Start(), sv.m}
	return sv.in, sv.down
}

// rest lets everything happen that can, deadlines included.
func (m *machine) rest() {
	time.Sleep(3 * modelDeadline)
	synctest.Wait()
}

// begin notes who may fail in what comes: the step itself may use up what was prepared.
func (m *machine) begin(t *rapid.T) {
	m.t = t
	m.excused = map[string]bool{}
	for name, sv := range m.plugins {
		m.excused[name] = sv.troubled()
	}
}

// troubled says that a plugin need not answer: what it does answer must be right all the same.
func (sv *supervisor) troubled() bool {
	return sv.down || sv.hold != nil || sv.ambush != nil && sv.ambush.Fired() == 0
}

func (m *machine) processes(what func(sv *supervisor) bool) []string {
	var names []string
	for _, name := range []string{"p", "q"} {
		if what(m.plugins[name]) {
			names = append(names, name)
		}
	}
	return names
}

func (m *machine) pick(t *rapid.T, what func(sv *supervisor) bool) *supervisor {
	names := m.processes(what)
	if len(names) == 0 {
		t.Skip("no such plugin")
	}
	return m.plugins[rapid.SampledFrom(names).Draw(t, "plugin")]
}

// The model.

// computing gives who computes each key for a set.
func (m *machine) computing(set string) map[string]*holding {
	keys := map[string]*holding{}
	for _, h := range m.holds {
		members, declared := m.sets[set]
		if declared && !slices.Contains(members, Registrant{Plugin: h.by}) {
			continue
		}
		if first := keys[h.def.Key]; first == nil || h.by < first.by {
			keys[h.def.Key] = h
		}
	}
	return keys
}

// truth is what a key shows right after event seq: a value, or the event that it fails on.
func truth(def unit.Definition, evs []event.Event, seq int64) (view, state string, faulted int64) {
	s, _ := def.Inline.Init()
	for i := range evs {
		if evs[i].Seq > seq || def.Events != nil && !slices.Contains(def.Events, evs[i].Type) {
			continue
		}
		next, changed, err := def.Inline.Apply(s, &evs[i])
		if err != nil {
			return "", "", evs[i].Seq
		}
		if changed {
			s = next
		}
	}
	v, _ := def.Inline.View(s)
	raw, _ := def.Inline.Encode(s)
	return string(v), string(raw), -1
}

// byOthers is what shared shows when another plugin computes it: the one that did so before serves until its successor can.
func (m *machine) byOthers(evs []event.Event, seq int64) (views []string) {
	for _, by := range []string{"here", "p", "q"} {
		view, _, _ := truth(modelUnits(by)[0], evs, seq)
		views = append(views, view)
	}
	return views
}

// compare checks a block against the model.
func (m *machine) compare(how string, set string, log *sampleLog, b Block, seq int64) {
	m.t.Helper()
	keys := m.computing(set)
	if b.AsOfSeq != seq {
		m.t.Fatalf("%s is as of %d, want %d", how, b.AsOfSeq, seq)
	}
	for key := range b.Values {
		if keys[key] == nil {
			m.t.Fatalf("%s has a value of %s, which nobody of the set offers", how, key)
		}
	}
	for key := range b.Unavailable {
		if keys[key] == nil {
			m.t.Fatalf("%s lists %s as unavailable, which nobody of the set offers", how, key)
		}
	}
	for key, h := range keys {
		got, has := b.Values[key]
		u, down := b.Unavailable[key]
		if h.def.ViewSchema == nil {
			if has || down {
				m.t.Fatalf("%s shows %s, which is host-only", how, key)
			}
			continue
		}
		if has == down {
			m.t.Fatalf("%s has %s as value: %v, and as unavailable: %v", how, key, has, down)
		}
		view, _, faulted := truth(h.def, log.events, seq)
		switch {
		case faulted >= 0 && has:
			m.t.Fatalf("%s shows %s = %s, which fails at %d", how, key, got, faulted)
		case has && string(got) != view && m.excused[h.by] && key == "shared" && slices.Contains(m.byOthers(log.events, seq), string(got)):
			m.count("served by the one before")
		case has && string(got) != view:
			m.t.Fatalf("%s shows %s = %s at %d, want %s", how, key, got, seq, view)
		case down && u.Code == Faulted && (faulted < 0 || u.FailedAt != faulted || u.Seq != faulted-1):
			m.t.Fatalf("%s shows %s as faulted at %d (%s), want %d", how, key, u.FailedAt, u.Message, faulted)
		case down && u.Code != Faulted && !m.excused[h.by]:
			m.t.Fatalf("%s shows %s as %s at %d (%s) although nothing is wrong with %s", how, key, u.Code, u.Seq, u.Message, h.by)
		case down && u.Code == Faulted:
			m.count("faulted")
		case down:
			m.count(string(u.Code))
		}
	}
}

// check is what holds after each step.
func (m *machine) check(t *rapid.T) {
	m.rest()
	m.begin(t)
	m.hear()
	for _, s := range m.live {
		if s.s == nil {
			continue
		}
		b, err := s.s.Snapshot(context.Background())
		if err != nil {
			t.Fatalf("snapshot of %s: %v", s.log.id, err)
		}
		m.compare("the snapshot of "+s.log.id, s.set, s.log, b, s.log.head())
		m.seed(s, b)
		m.rest()
		m.begin(t)
	}
	m.rest()
	m.hear()
}

// hear applies the feed to the clients by their rule: newer is the higher revision, then the higher seq.
func (m *machine) hear() {
	for _, c := range m.feed {
		at := place{c.Session, c.Key}
		switch c.Kind {
		case KindValue:
			if old, ok := m.clients[at]; !ok || newer(c.Rev, c.Seq, old) {
				m.clients[at] = c
			}
		case KindRemoved:
			delete(m.clients, at)
		}
	}
	m.feed = nil
}

func newer(rev, seq int64, than Change) bool {
	return rev > than.Rev || rev == than.Rev && seq > than.Seq
}

// seed gives a client a block and looks whether it then shows what the block says: whatever it heard before may be newer by its
// rule only if it is the same.
func (m *machine) seed(s *modelSession, b Block) {
	for key, v := range b.Values {
		at := place{s.log.id, key}
		if old, ok := m.clients[at]; ok && !newer(b.Revs[key], b.AsOfSeq, old) && string(old.Value) != string(v) {
			m.t.Fatalf("a client of %s keeps %s = %s (rev %d, seq %d) and takes %s (rev %d, seq %d) for older",
				at.session, key, old.Value, old.Rev, old.Seq, v, b.Revs[key], b.AsOfSeq)
		}
		m.clients[at] = Change{Session: at.session, Key: key, Value: v, Seq: b.AsOfSeq, Rev: b.Revs[key]}
	}
	for at := range m.clients {
		if _, ok := b.Values[at.key]; at.session == s.log.id && !ok {
			delete(m.clients, at)
		}
	}
}

// The steps.

func (m *machine) session(t *rapid.T, attached bool) *modelSession {
	var some []*modelSession
	for _, s := range m.live {
		if (s.s != nil) == attached {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		t.Skip("no such session")
	}
	return rapid.SampledFrom(some).Draw(t, "session")
}

func (m *machine) append(t *rapid.T) {
	s := m.session(t, true)
	var evs []event.Event
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		typ := rapid.SampledFrom(modelTypes).Draw(t, "type")
		seq := s.log.head() + 1 + int64(len(evs))
		evs = append(evs, event.Event{Type: typ, Seq: seq, Data: []byte(fmt.Sprintf(`{"at":%d}`, seq))})
	}
	s.log.append(evs...)
	s.s.Publish(context.Background(), evs)
}

func (m *machine) draw(t *rapid.T) (by string, def unit.Definition) {
	by = rapid.SampledFrom([]string{"here", "p", "q"}).Draw(t, "plugin")
	defs := modelUnits(by)
	if by != "here" {
		defs = slices.DeleteFunc(defs, func(d unit.Definition) bool { return d.StateVersion == 2 })
	}
	return by, rapid.SampledFrom(defs).Draw(t, "unit")
}

// offered is the definition as it is handed to the registry.
func (m *machine) offered(by string, def unit.Definition) unit.Definition {
	if sv := m.plugins[by]; sv.p != nil {
		def.Inline, def.Instance = nil, sv.in
	}
	return def
}

func (m *machine) conflicts(def unit.Definition, except *holding) bool {
	return slices.ContainsFunc(m.holds, func(h *holding) bool {
		return h != except && h.def.Key == def.Key && h.def.StateVersion != def.StateVersion
	})
}

func (m *machine) register(t *rapid.T) {
	by, def := m.draw(t)
	if len(m.holds) > 20 {
		t.Skip("enough")
	}
	reg, err := m.r.Register(Registrant{Plugin: by}, m.offered(by, def))
	var conflict *VersionConflictError
	if want := m.conflicts(def, nil); errors.As(err, &conflict) != want || err != nil && !want {
		t.Fatalf("registering %s version %d: %v, want a conflict: %v", def.Key, def.StateVersion, err, want)
	}
	if err != nil {
		m.count("conflict")
		return
	}
	m.mu.Lock()
	m.holds = append(m.holds, &holding{by: by, def: def, reg: reg})
	m.mu.Unlock()
	if sv := m.plugins[by]; sv.down {
		reg.Suspend(Parked, "it is parked")
	}
}

func (m *machine) some(t *rapid.T) *holding {
	if len(m.holds) == 0 {
		t.Skip("nothing is registered")
	}
	return rapid.SampledFrom(m.holds).Draw(t, "registration")
}

func (m *machine) release(t *rapid.T) { m.releaseOne(m.some(t)) }

// handOver releases a registration that computes a key which others offer too.
func (m *machine) handOver(t *rapid.T) {
	computing := m.computing("")
	for _, h := range m.holds {
		if computing[h.def.Key] == h && slices.ContainsFunc(m.holds, func(o *holding) bool { return o != h && o.def.Key == h.def.Key }) {
			m.releaseOne(h)
			return
		}
	}
	t.Skip("no key has a successor")
}

func (m *machine) releaseOne(h *holding) {
	before := m.computing("")[h.def.Key]
	m.mu.Lock()
	m.holds = slices.DeleteFunc(slices.Clone(m.holds), func(o *holding) bool { return o == h })
	m.mu.Unlock()
	if after := m.computing("")[h.def.Key]; before == h && after != nil {
		m.count("takeover")
	}
	h.reg.Release()
	h.reg.Release()
}

// upgrade moves the chain of this process to its other version.
func (m *machine) upgrade(t *rapid.T) {
	for _, h := range m.holds {
		if h.by == "here" && h.def.Key == "chain" {
			m.replaceBy(t, h, modelUnits("here")[h.def.StateVersion%2+1])
			return
		}
	}
	t.Skip("it is not registered")
}

func (m *machine) replace(t *rapid.T) {
	h := m.some(t)
	var defs []unit.Definition
	for _, d := range modelUnits(h.by) {
		if d.Key == h.def.Key && (h.by == "here" || d.StateVersion == 1) {
			defs = append(defs, d)
		}
	}
	m.replaceBy(t, h, rapid.SampledFrom(defs).Draw(t, "definition"))
}

func (m *machine) replaceBy(t *rapid.T, h *holding, def unit.Definition) {
	err := m.r.Replace(h.reg, m.offered(h.by, def))
	var conflict *VersionConflictError
	if want := m.conflicts(def, h); errors.As(err, &conflict) != want || err != nil && !want {
		t.Fatalf("replacing %s by version %d: %v, want a conflict: %v", def.Key, def.StateVersion, err, want)
	}
	if err != nil {
		m.count("conflict")
		return
	}
	m.count("replaced")
	if def.StateVersion != h.def.StateVersion {
		m.count("other version")
	}
	h.def = def
	if m.plugins[h.by].down {
		h.reg.Suspend(Parked, "it is parked")
	}
}

func (m *machine) members(t *rapid.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"here", "p", "q"}), 0, 3, rapid.ID[string]).Draw(t, "members")
	var members []Registrant
	for _, n := range names {
		members = append(members, Registrant{Plugin: n})
	}
	m.sets["named"] = members
	m.r.SetMembers("named", members)
}

func (m *machine) checkpoint(t *rapid.T) {
	m.begin(t)
	s := m.session(t, true)
	rows, err := s.s.Checkpoint(context.Background())
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	keys := m.computing(s.set)
	for key, row := range rows.Rows {
		h := keys[key]
		if h == nil {
			t.Fatalf("there is a row of %s, which nobody offers", key)
		}
		view, state, faulted := truth(h.def, s.log.events, row.Seq)
		if key == "shared" && m.excused[h.by] && slices.Contains(m.byOthers(s.log.events, row.Seq), string(row.View)) {
			view = string(row.View)
		}
		if faulted >= 0 || string(row.Val) != state || row.View != nil && string(row.View) != view {
			t.Fatalf("the row of %s at %d is %s with view %s, want %s and %s (faulted: %d)", key, row.Seq, row.Val, row.View, state, view, faulted)
		}
	}
	for key, h := range keys {
		_, _, faulted := truth(h.def, s.log.events, s.log.head())
		if row, ok := rows.Rows[key]; !m.excused[h.by] && faulted < 0 && (!ok || row.Seq != s.log.head()) {
			t.Fatalf("there is no row of %s at %d: %+v", key, s.log.head(), row)
		}
	}
	s.rows = append(s.rows, rows)
}

func (m *machine) detach(t *rapid.T) {
	s := m.session(t, true)
	s.s.Detach(false)
	s.s = nil
}

func (m *machine) drawRows(t *rapid.T, s *modelSession) Rows {
	if len(s.rows) == 0 || rapid.IntRange(0, 3).Draw(t, "without rows") == 0 {
		return Rows{}
	}
	rows := rapid.SampledFrom(s.rows).Draw(t, "rows")
	rows.Rows = maps.Clone(rows.Rows)
	for key, row := range rows.Rows {
		if rapid.IntRange(0, 9).Draw(t, "spoil "+key) == 0 {
			row.Val, row.Anchor = []byte(`{"n":99,"h":"phantom"}`), "phantom"
			rows.Rows[key] = row
		}
	}
	m.count("seeded by rows")
	return rows
}

func (m *machine) attach(t *rapid.T) {
	s := m.session(t, false)
	s.s = m.r.Attach(s.log, s.set, s.log.head(), m.drawRows(t, s))
}

// kill ends a process that is idle, or held with batches in flight.
func (m *machine) kill(t *rapid.T) {
	sv := m.pick(t, func(sv *supervisor) bool { return sv.ambush == nil || sv.ambush.Fired() > 0 })
	sv.unhold()
	sv.p.Crash()
}

// ambush makes the process die or hang once, in the middle of whatever it folds next.
func (m *machine) ambush(t *rapid.T) {
	sv := m.pick(t, func(sv *supervisor) bool { return !sv.troubled() })
	if rapid.Bool().Draw(t, "hang") {
		m.count("hang")
		sv.ambush = fakeplugin.Hang(fakeplugin.AtEvent).Once()
	} else {
		m.count("crash at an event")
		sv.ambush = fakeplugin.Crash(fakeplugin.AtEvent).Once()
	}
	m.forgive()
	sv.p.Add(sv.ambush)
}

// forgive lets the registry forget whom it suspects. Two accidents of one cell in a row would rightly be its fault; that they are
// not told from bad luck is not what is tested here.
func (m *machine) forgive() {
	m.r.poison.mu.Lock()
	defer m.r.poison.mu.Unlock()
	m.r.poison.records = nil
}

// hold keeps the present process from answering.
func (m *machine) hold(t *rapid.T) {
	sv := m.pick(t, func(sv *supervisor) bool { return !sv.troubled() })
	m.forgive()
	sv.release = make(chan struct{})
	sv.hold = sv.p.Add(fakeplugin.Hold(fakeplugin.AtBatch, sv.release).Gen(sv.in.Gen()))
}

func (sv *supervisor) unhold() {
	if sv.hold == nil {
		return
	}
	if sv.hold.Fired() > 0 {
		sv.m.count("held")
	}
	close(sv.release)
	sv.hold = nil
	synctest.Wait()
}

func (m *machine) letGo(t *rapid.T) {
	m.pick(t, func(sv *supervisor) bool { return sv.hold != nil }).unhold()
}

func (m *machine) suspend(t *rapid.T) {
	sv := m.pick(t, func(sv *supervisor) bool { return !sv.troubled() })
	sv.down = true
	for _, g := range sv.regs() {
		g.Suspend(Parked, "it is parked")
	}
}

func (m *machine) resume(t *rapid.T) {
	sv := m.pick(t, func(sv *supervisor) bool { return sv.down })
	sv.down = false
	in, _ := sv.start()
	for _, g := range sv.regs() {
		g.Resume(in)
	}
}

func (m *machine) retry(t *rapid.T) {
	s := m.session(t, true)
	if _, err := s.s.Retry(context.Background()); err != nil {
		t.Fatalf("retry: %v", err)
	}
}

func (m *machine) past(t *rapid.T) {
	m.begin(t)
	s := m.session(t, true)
	seq := rapid.Int64Range(-1, s.log.head()).Draw(t, "seq")
	b, err := s.s.SnapshotAt(context.Background(), seq)
	if err != nil {
		t.Fatalf("snapshot at %d: %v", seq, err)
	}
	m.compare(fmt.Sprintf("the past of %s at %d", s.log.id, seq), s.set, s.log, b, seq)
}

func (m *machine) cold(t *rapid.T) {
	m.begin(t)
	s := rapid.SampledFrom(m.live).Draw(t, "session")
	b, rows, err := m.r.RestoreFrom(context.Background(), s.set, m.drawRows(t, s), s.log, s.log.head())
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	m.count("restored")
	m.compare("the restored "+s.log.id, s.set, s.log, b, s.log.head())
	s.rows = append(s.rows, rows)
}

// pull compares the pull with the model, up to where a key goes down.
func (m *machine) pull(t *rapid.T) {
	m.begin(t)
	s := m.session(t, true)
	from := rapid.Int64Range(0, s.log.head()+1).Draw(t, "from")
	keys := m.computing(s.set)
	got := map[string][]string{}
	ended := map[string]bool{}
	for c, err := range s.s.Changes(context.Background(), from) {
		switch {
		case err != nil:
			t.Fatalf("pull: %v", err)
		case c.Kind == KindUnavailable:
			_, _, faulted := truth(keys[c.Key].def, s.log.events, s.log.head())
			if c.Unavailable.Code == Faulted && c.Unavailable.FailedAt != faulted || c.Unavailable.Code != Faulted && !m.excused[keys[c.Key].by] {
				t.Fatalf("the pull ends %s by %+v, want faulted at %d", c.Key, c.Unavailable, faulted)
			}
			ended[c.Key] = true
		default:
			got[c.Key] = append(got[c.Key], fmt.Sprintf("%d=%s", c.Seq, c.Value))
		}
	}
	for key, h := range keys {
		if h.def.ViewSchema == nil {
			continue
		}
		var want []string
		before, _, _ := truth(h.def, s.log.events, from-1)
		for seq := from; seq <= s.log.head(); seq++ {
			now, _, faulted := truth(h.def, s.log.events, seq)
			if faulted >= 0 {
				break
			}
			if now != before {
				want = append(want, fmt.Sprintf("%d=%s", seq, now))
				before = now
			}
		}
		g, w := strings.Join(got[key], " "), strings.Join(want, " ")
		if g != w && !(ended[key] && strings.HasPrefix(w, g)) {
			t.Fatalf("the pull of %s from %d gives %s\nthe model %s", key, from, g, w)
		}
	}
	m.count("pulled")
}
