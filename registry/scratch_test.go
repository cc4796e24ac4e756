package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// sampleLog is a log in memory that answers in short pages and keeps a record of what was read.
type sampleLog struct {
	id, incarnation string

	mu     sync.Mutex
	events []event.Event
	page   int // events per page; 0 is 3
	// given counts the events handed out by type, pages the calls.
	given map[string]int
	pages int
	err   error
}

func newSampleLog(id string, events ...event.Event) *sampleLog {
	return &sampleLog{id: id, incarnation: id + ".1", events: events, given: map[string]int{}}
}

func (l *sampleLog) ID() string          { return l.id }
func (l *sampleLog) Incarnation() string { return l.incarnation }

func (l *sampleLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(ctx.Err(), l.err); err != nil {
		return nil, 0, err
	}
	l.pages++
	page := l.page
	if page == 0 {
		page = 3
	}
	var out []event.Event
	at := from
	for ; at < to && at < int64(len(l.events)) && len(out) < page; at++ {
		if ev := l.events[at]; types == nil || slices.Contains(types, ev.Type) {
			out = append(out, ev)
			l.given[ev.Type]++
		}
	}
	if at == int64(len(l.events)) {
		at = max(at, to)
	}
	return out, at, nil
}

func (l *sampleLog) append(events ...event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
}

func (l *sampleLog) head() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events)) - 1
}

// events makes a log of the types, with data that tells events apart.
func events(types ...string) []event.Event {
	var evs []event.Event
	for i, typ := range types {
		evs = append(evs, event.Event{Type: typ, Seq: int64(i), Data: json.RawMessage(fmt.Sprintf(`{"at":%d}`, i))})
	}
	return evs
}

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// folded is what a unit's own functions make of the events up to seq: the model that everything is compared with.
func folded(t failer, def unit.Definition, evs []event.Event, seq int64) (view, state string) {
	t.Helper()
	s, err := def.Inline.Init()
	for i := range evs {
		if err == nil && evs[i].Seq <= seq && (def.Events == nil || slices.Contains(def.Events, evs[i].Type)) {
			var changed bool
			var next unit.State
			if next, changed, err = def.Inline.Apply(s, &evs[i]); changed {
				s = next
			}
		}
	}
	if err != nil {
		t.Fatalf("the model of %s fails: %v", def.Key, err)
	}
	v, _ := def.Inline.View(s)
	raw, _ := def.Inline.Encode(s)
	return string(v), string(raw)
}

func register(t testing.TB, r *Registry, plugin string, defs ...unit.Definition) []*Registration {
	t.Helper()
	var regs []*Registration
	for _, d := range defs {
		reg, err := r.Register(Registrant{Plugin: plugin}, d)
		if err != nil {
			t.Fatal(err)
		}
		regs = append(regs, reg)
	}
	return regs
}

// compiledBindings are bindings of definitions that nobody registered anywhere.
func compiledBindings(t testing.TB, r *Registry, defs ...unit.Definition) []*binding {
	t.Helper()
	register(t, r, "p", defs...)
	return r.setBindings("")
}

func TestAScratchCellSurvivesOrEndsByItself(t *testing.T) {
	evs := events("mark", "mark", "other", "mark", "mark", "mark")
	for name, c := range map[string]struct {
		fault *fakeplugin.Fault
		// code is what the key of the plugin ends with, empty for its right value.
		code UnavailableCode
		seq  int64
	}{
		"sound":                      {nil, "", 0},
		"a fault at an event":        {fakeplugin.Fail(fakeplugin.AtEvent, "no").Key("n").Seq(3), Faulted, 3},
		"a panic at an event":        {fakeplugin.Panic(fakeplugin.AtEvent).Key("n").Seq(3), Faulted, 3},
		"a fault at opening":         {fakeplugin.Fail(fakeplugin.AtOpen, "no").Key("n"), Faulted, -1},
		"a crash at an event":        {fakeplugin.Crash(fakeplugin.AtEvent).Key("n").Seq(3), Restarting, 2},
		"a crash at opening":         {fakeplugin.Crash(fakeplugin.AtOpen).Key("n"), Restarting, -1},
		"a hang":                     {fakeplugin.Hang(fakeplugin.AtEvent).Key("n").Seq(4), Behind, 2},
		"a stall":                    {fakeplugin.Stall(fakeplugin.AtBatch), Behind, -1},
		"a refused batch":            {fakeplugin.Refuse(errors.New("bad frame")), Behind, -1},
		"a cell forgotten once":      {fakeplugin.ForgetCell(fakeplugin.AtEvent).Key("n").Seq(3).Once(), "", 0},
		"a cell forgotten always":    {fakeplugin.ForgetCell(fakeplugin.AtEvent).Key("n").Seq(3), Behind, 1},
		"a cell never there":         {fakeplugin.ForgetCell(fakeplugin.AtOpen).Key("n"), Behind, -1},
		"a view against its schema":  {fakeplugin.View(json.RawMessage(`"x"`)).Seq(5), Faulted, 5},
		"a view that is not JSON":    {fakeplugin.View(json.RawMessage(`{`)).Seq(5), Faulted, 5},
		"a view that is too large":   {fakeplugin.View(json.RawMessage(`[` + string(make([]byte, 4000)) + `]`)).Seq(5), Faulted, 5},
		"values beyond the batch":    {fakeplugin.Shift(+1), Behind, -1},
		"values from before":         {fakeplugin.Shift(-2), Behind, -1},
		"no values":                  {fakeplugin.Silent(), Behind, -1},
		"values of a foreign cell":   {fakeplugin.Foreign(9999), "", 0},
		"every answer twice":         {fakeplugin.Twice(), "", 0},
		"no states":                  {fakeplugin.NoStates(), Behind, 5},
		"a state that is not JSON":   {fakeplugin.State(json.RawMessage(`{`)), "", 0},
		"a state that is too large":  {fakeplugin.State(json.RawMessage(`"` + string(make([]byte, 4000)) + `"`)), Faulted, 5},
		"a state against its schema": {fakeplugin.State(json.RawMessage(`-1`)), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{MaxViewBytes: 2000, MaxStateBytes: 2000, BatchEvents: 2})
				defer r.Close()
				n, here, other := fakeplugin.Counter("n", "mark"), fakeplugin.Chain("here", "mark"), fakeplugin.Counter("other", "mark", "other")
				bad, good := fakeplugin.New(n), fakeplugin.New(other)
				defer bad.Close()
				defer good.Close()
				if c.fault != nil {
					bad.Add(c.fault)
				}
				register(t, r, "bad", bad.Definitions()...)
				register(t, r, "good", good.Definitions()...)
				register(t, r, "here", here)

				s := newScratch(r, newSampleLog("s", evs...), r.setBindings(""))
				err := errors.Join(
					s.openAll(t.Context(), func(*scratchCell, string) bool { return false }),
					s.advance(t.Context(), 5),
				)
				values := map[string]string{}
				for _, cell := range s.cells {
					values[cell.Key] = string(s.value(cell))
				}
				states, serr := s.states(t.Context())
				if err = errors.Join(err, serr); err != nil {
					t.Fatal(err)
				}
				for _, cell := range s.cells {
					if cell.Key == "n" && c.code != "" {
						if d := cell.down; d == nil || d.Code != c.code || d.Code != Faulted && d.Seq != c.seq || d.Code == Faulted && d.FailedAt != c.seq || states[cell] != nil {
							t.Errorf("n is down by %+v with state %s, want %s at %d and none", cell.down, states[cell], c.code, c.seq)
						}
						continue
					}
					def := map[string]unit.Definition{"n": n, "here": here, "other": other}[cell.Key]
					view, state := folded(t, def, evs, 5)
					if cell.down != nil || values[cell.Key] != view {
						t.Errorf("%s = %s (down: %+v), want %s", cell.Key, values[cell.Key], cell.down, view)
					}
					if got := string(states[cell]); got != state && (cell.Key != "n" || got != "") {
						t.Errorf("state of %s = %s, want %s", cell.Key, got, state)
					}
				}
				if c.fault != nil && c.fault.Fired() == 0 {
					t.Error("the fault did not fire")
				}
				bad.Heal()
				s.close()
				synctest.Wait()
				if n := good.Process().Cells(); n != 0 {
					t.Errorf("%d cells are left at the good plugin", n)
				}
				if n := bad.Process().Cells(); n != 0 && c.fault != nil && name != "a hang" && name != "a stall" { // those two count as dead: their processes are killed
					t.Errorf("%d cells are left at the bad plugin", n)
				}
			})
		})
	}
}

func TestAScratchSendsEachEventOncePerInstanceAndReadsOnlyWhatIsFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		defer r.Close()
		p := fakeplugin.New(fakeplugin.Counter("a", "x"), fakeplugin.Counter("b", "x", "y"), fakeplugin.Constant("c", `1`))
		defer p.Close()
		register(t, r, "p", p.Definitions()...)
		var types []string
		for range 50 {
			types = append(types, "x", "noise", "y", "noise", "noise")
		}
		log := newSampleLog("s", events(types...)...)
		log.page = 20
		s := newScratch(r, log, r.setBindings(""))
		defer s.close()
		if err := errors.Join(s.openAll(t.Context(), nil), s.advance(t.Context(), log.head())); err != nil {
			t.Fatal(err)
		}
		if n := p.Counts(); n.Events != 100 || n.Types["noise"] != 0 || n.Applied != 150 {
			t.Errorf("the plugin got %d events and applied %d, %d of them noise; want 100, 150 and none", n.Events, n.Applied, n.Types["noise"])
		}
		if log.given["noise"] != 0 || log.given["x"] != 50 || log.given["y"] != 50 {
			t.Errorf("read %v, want x and y once each and no noise", log.given)
		}
	})
}

func TestCellsThatStartLateCauseNoReadingOfWhatTheyHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		defer r.Close()
		register(t, r, "p", fakeplugin.Counter("old", "x"), fakeplugin.Counter("young", "y"))
		log := newSampleLog("s", events("x", "y", "x", "y", "x", "y", "x", "y")...)
		s := newScratch(r, log, r.setBindings(""))
		defer s.close()
		s.cells[0].seed(json.RawMessage(`3`), 5)
		if err := errors.Join(s.openAll(t.Context(), nil), s.advance(t.Context(), 7)); err != nil {
			t.Fatal(err)
		}
		if a, b := string(s.value(s.cells[0])), string(s.value(s.cells[1])); a != "4" || b != "4" {
			t.Errorf("old = %s, young = %s, want 4 and 4", a, b)
		}
		if log.given["x"] != 1 || log.given["y"] != 4 {
			t.Errorf("read %v, want one x and four y", log.given)
		}
	})
}

func TestAScratchEndsWithItsContextAndWithTheLog(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := New(Options{})
			defer r.Close()
			p := fakeplugin.New(fakeplugin.Counter("n", "x"))
			defer p.Close()
			hang := p.Add(fakeplugin.Hang(fakeplugin.AtEvent))
			register(t, r, "p", p.Definitions()...)
			ctx, cancel := context.WithCancel(t.Context())
			s := newScratch(r, newSampleLog("s", events("x")...), r.setBindings(""))
			defer s.close()
			if err := s.openAll(ctx, nil); err != nil {
				t.Fatal(err)
			}
			go func() { synctest.Wait(); cancel() }()
			if err := s.advance(ctx, 0); !errors.Is(err, context.Canceled) || hang.Fired() != 1 {
				t.Errorf("error = %v after %d hangs, want the context's after one", err, hang.Fired())
			}
		})
	})
	t.Run("log", func(t *testing.T) {
		r := New(Options{})
		defer r.Close()
		log := newSampleLog("s", events("x")...)
		log.err = errors.New("disk")
		s := newScratch(r, log, compiledBindings(t, r, fakeplugin.Counter("n", "x")))
		defer s.close()
		if err := errors.Join(s.openAll(t.Context(), nil), s.advance(t.Context(), 0)); !errors.Is(err, log.err) {
			t.Errorf("error = %v, want the log's", err)
		}
	})
}
