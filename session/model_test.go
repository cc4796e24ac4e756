package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
)

// machine drives a set at random, beside a model that is a list of events for each session. It makes its own data, so that an event says where it comes from.
type machine struct {
	set    *session.Set
	ledger *ledger
	veto   bool
	logs   map[string]*modelled
	ids    []string
	n      int
}

// modelled is what the model knows of a life: handles that were given out, and the log.
type modelled struct {
	handles []*session.Session
	log     []event.Event
	keys    map[string]eventlog.Commit
}

func (m *machine) pick(t *rapid.T) *modelled {
	if len(m.ids) == 0 {
		t.Skip("no sessions")
	}
	return m.logs[rapid.SampledFrom(m.ids).Draw(t, "session")]
}

func (m *modelled) handle(t *rapid.T) *session.Session {
	return rapid.SampledFrom(m.handles).Draw(t, "handle")
}

func (m *machine) add(s *session.Session, log []event.Event) {
	m.logs[s.ID()] = &modelled{handles: []*session.Session{s}, log: log, keys: map[string]eventlog.Commit{}}
	m.ids = append(m.ids, s.ID())
}

func (m *machine) name() string { m.n++; return fmt.Sprint("n", m.n) }

// draw makes a step that may or may not be accepted on top of a log.
func (m *machine) draw(t *rapid.T, log []event.Event) step {
	n := int64(len(log))
	var st step
	switch rapid.SampledFrom([]string{"note", "turn", "user", "assistant", "result"}).Draw(t, "kind") {
	case "note":
		return note(m.name())
	case "turn":
		return rapid.SampledFrom([]step{turnStart(1), turnEnd(1), stepStart(1, 1), stepEnd(1, 1)}).Draw(t, "marker")
	case "user":
		st = user(m.name())
	case "assistant":
		st = assistant(m.name(), rapid.SampledFrom([][]string{nil, {"c"}}).Draw(t, "calls")...)
	case "result":
		st = toolResult("c", m.name())
	}
	if rapid.IntRange(0, 2).Draw(t, "replace") > 0 {
		return st
	}
	start, end := rapid.Int64Range(0, n+1).Draw(t, "start"), rapid.Int64Range(0, n+1).Draw(t, "end")
	sources := []int64{}
	for seq := range n {
		sources = append(sources, seq)
	}
	if rapid.Bool().Draw(t, "lacking") && n > 0 {
		sources = sources[1:]
	}
	return st.replacing(start, end, sources...)
}

func (st step) event(seq int64) event.Event {
	return event.Event{Type: st.typ, Seq: seq, Time: 1, Data: json.RawMessage(st.data), Op: st.in.Op, Sources: st.in.Sources}
}

// shorten rewrites several tool results in one batch, which draw would hardly ever do.
func (m *machine) shorten(t *rapid.T) {
	l := m.pick(t)
	var steps []step
	for _, seq := range resultNodes(l.log) {
		if len(steps) < 4 && rapid.Bool().Draw(t, "this one") {
			steps = append(steps, toolResult("c", m.name()).replacing(seq, seq, seq))
		}
	}
	if len(steps) == 0 {
		t.Skip("nothing to rewrite")
	}
	m.appended(t, l, steps, func() ([]event.Event, error) {
		_, events, err := l.handle(t).AppendBatch(context.Background(), session.Batch{Items: items(steps...)})
		return events, err
	})
}

// resultNodes are the tool results on the surface of a log, none when it has no surface.
func resultNodes(log []event.Event) []int64 {
	folded, _ := surface.Fold(undrafts(log))
	return slices.DeleteFunc(folded.Nodes, func(seq int64) bool { return log[seq].Type != event.ToolResult })
}

// fits says whether the log with the events at its end is one that a full fold accepts.
func fits(log []event.Event) bool {
	_, err := surface.Fold(undrafts(log))
	return err == nil
}

func (m *machine) create(t *rapid.T) {
	if len(m.ids) >= 4 {
		t.Skip("enough sessions")
	}
	n := session.New{}
	var log []event.Event
	if rapid.Bool().Draw(t, "seeded") {
		n.Seed = []event.Draft{}
		for range rapid.IntRange(0, 4).Draw(t, "seed") {
			log = append(log, m.draw(t, log).event(int64(len(log))))
			n.Seed = append(n.Seed, event.Draft{Event: log[len(log)-1]})
		}
	}
	s, err := m.set.Create(context.Background(), n)
	if ok := fits(log); ok != (err == nil) {
		t.Fatalf("create: %v, the model says %v", err, ok)
	}
	if err == nil {
		if n.Seed != nil {
			log = append(log, step{typ: event.EndSeed, data: `{}`}.event(int64(len(log))))
		}
		m.add(s, log)
	}
}

func (m *machine) appendOne(t *rapid.T) {
	l := m.pick(t)
	st := m.draw(t, l.log)
	m.appended(t, l, []step{st}, func() ([]event.Event, error) {
		ev, err := appendStep(l.handle(t), st)
		return []event.Event{ev}, err
	})
}

func (m *machine) appendBatch(t *rapid.T) {
	l := m.pick(t)
	var steps []step
	log := slices.Clone(l.log)
	for range rapid.IntRange(1, 4).Draw(t, "batch") {
		st := m.draw(t, log)
		steps, log = append(steps, st), append(log, st.event(int64(len(log))))
	}
	b := session.Batch{Items: items(steps...)}
	if rapid.Bool().Draw(t, "keyed") {
		b.Once.Key = m.name()
	}
	m.appended(t, l, steps, func() ([]event.Event, error) {
		commit, events, err := l.handle(t).AppendBatch(context.Background(), b)
		if err == nil && b.Once.Key != "" {
			l.keys[b.Once.Key] = commit
		}
		return events, err
	})
}

// appended compares an append with the model, and follows it.
func (m *machine) appended(t *rapid.T, l *modelled, steps []step, call func() ([]event.Event, error)) {
	log := slices.Clone(l.log)
	for _, st := range steps {
		log = append(log, st.event(int64(len(log))))
	}
	got, err := call()
	var vetoed *session.VetoError
	switch {
	case !fits(log):
		if err == nil || errors.As(err, &vetoed) {
			t.Fatalf("accepted what breaks the surface: %v", err)
		}
	case m.veto:
		if !errors.As(err, &vetoed) {
			t.Fatalf("got %v, want a veto", err)
		}
	case err != nil:
		t.Fatalf("refused: %v", err)
	default:
		same(t, "returned events", got, log[len(l.log):])
		l.log = log
	}
}

func (m *machine) repeat(t *rapid.T) {
	l := m.pick(t)
	if len(l.keys) == 0 {
		t.Skip("no keys")
	}
	key := rapid.SampledFrom(slices.Sorted(keysOf(l.keys))).Draw(t, "key")
	want := l.keys[key]
	commit, events, err := l.handle(t).AppendBatch(context.Background(), session.Batch{Items: items(note("again")), Once: session.Once{Key: key}})
	if err != nil || !commit.Repeated || commit.First != want.First || commit.Seq != want.Seq {
		t.Fatalf("repeated: %+v, %v; want %+v", commit, err, want)
	}
	same(t, "repeated events", events, l.log[want.First:want.Seq])
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (m *machine) recover(t *rapid.T) {
	l := m.pick(t)
	var last *event.Event
	if len(l.log) > 0 {
		last = &l.log[len(l.log)-1]
	}
	want, err := session.Closers(each(l.log), last)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.handle(t).Recover(context.Background())
	if m.veto && len(want) > 0 {
		var vetoed *session.VetoError
		if !errors.As(err, &vetoed) {
			t.Fatalf("got %v, want a veto", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("recover: %v", err)
	}
	same(t, "closers", got, want)
	l.log = append(l.log, want...)
}

func (m *machine) fork(t *rapid.T) {
	if len(m.ids) >= 4 {
		t.Skip("enough sessions")
	}
	l := m.pick(t)
	boundary := rapid.Int64Range(-1, int64(len(l.log))).Draw(t, "boundary")
	child, err := m.set.Fork(context.Background(), l.handles[0].ID(), session.Fork{Boundary: &boundary})
	ok := boundary >= 0 && boundary < int64(len(l.log))
	if ok {
		for _, ev := range l.log[:boundary+1] {
			switch ev.Type {
			case event.TurnStart:
				ok = false
			case event.TurnEnd:
				ok = true
			}
		}
	}
	if ok != (err == nil) {
		t.Fatalf("fork at %d of %v: %v, the model says %v", boundary, types(l.log), err, ok)
	}
	if err != nil {
		return
	}
	log := slices.Clone(l.log[:boundary+1])
	if log[boundary].Type != event.EndSeed {
		log = append(log, step{typ: event.EndSeed, data: `{}`}.event(boundary+1))
	}
	m.add(child, log)
}

func (m *machine) open(t *rapid.T) {
	l := m.pick(t)
	s, err := m.set.Open(context.Background(), l.handles[0].ID())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	l.handles = append(l.handles, s)
}

func (m *machine) detach(t *rapid.T) {
	if err := m.pick(t).handle(t).Detach(context.Background()); err != nil {
		t.Fatalf("detach: %v", err)
	}
}

func (m *machine) delete(t *rapid.T) {
	l := m.pick(t)
	id := l.handles[0].ID()
	if err := m.set.Delete(context.Background(), id); err != nil {
		t.Fatalf("delete: %v", err)
	}
	delete(m.logs, id)
	m.ids = slices.DeleteFunc(m.ids, func(s string) bool { return s == id })
	var gone *eventlog.NotFoundError
	if _, err := appendStep(l.handle(t), note("x")); !errors.As(err, &gone) {
		t.Fatalf("append to a deleted life: %v", err)
	}
	if rapid.Bool().Draw(t, "again") {
		s, err := m.set.Create(context.Background(), session.New{Header: event.Header{ID: id}})
		if err != nil {
			t.Fatalf("create again: %v", err)
		}
		m.add(s, nil)
		if _, err := appendStep(l.handle(t), note("x")); !errors.As(err, &gone) {
			t.Fatalf("append to an earlier life: %v", err)
		}
	}
}

// look compares the derived messages of one session; check compares the rest of all of them.
func (m *machine) look(t *rapid.T) {
	l := m.pick(t)
	folded, err := surface.Fold(undrafts(l.log))
	if err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	for _, seq := range folded.Nodes {
		if msg := event.MessageOf(&l.log[seq]); msg != nil {
			want = append(want, msg)
		}
	}
	got, err := l.handle(t).Messages(context.Background())
	if err != nil {
		t.Fatalf("messages: %v", err)
	}
	if !slices.EqualFunc(raws(got), want, bytes.Equal) {
		t.Fatalf("messages are\n%s, want\n%s", raws(got), want)
	}
}

func (m *machine) check(t *rapid.T) {
	ctx := context.Background()
	for _, id := range m.ids {
		l := m.logs[id]
		s := l.handles[0]
		live := s.Live()
		var log []event.Event
		for ev, err := range s.Scan(ctx, 0, 0, nil) {
			if err != nil {
				t.Fatalf("scan: %v", err)
			}
			log = append(log, ev)
		}
		same(t, "log", log, l.log)
		if !live {
			continue // and leave it cold
		}
		folded, err := surface.Fold(undrafts(l.log))
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Surface().State(ctx)
		if err != nil || !slices.Equal(st.Nodes, folded.Nodes) || st.ReplaceGeneration != folded.ReplaceGeneration || st.AsOfSeq != int64(len(l.log))-1 {
			t.Fatalf("the surface is %+v, %v; want %+v", st, err, folded)
		}
		if head, ok := m.ledger.head(id); !ok || head != st.AsOfSeq {
			t.Fatalf("the drive is at %d, %v; want %d", head, ok, st.AsOfSeq)
		}
	}
}

// same compares events but for their times, which the model leaves to the session.
func same(t *rapid.T, what string, got, want []event.Event) {
	t.Helper()
	equal := slices.EqualFunc(got, want, func(a, b event.Event) bool {
		b.Time = a.Time
		return bytes.Equal(a.AppendJSON(nil), b.AppendJSON(nil))
	})
	if !equal {
		t.Fatalf("%s: got\n%v, want\n%v", what, got, want)
	}
}

// Given anything that a program may do with a set, in any order, then log, surface, messages and drive are those of a model that is a list of events.
func TestModel(t *testing.T) {
	for name, wrap := range map[string]func(eventlog.Store) eventlog.Store{
		"memory":      func(s eventlog.Store) eventlog.Store { return s },
		"short pages": func(s eventlog.Store) eventlog.Store { return logtest.Short(s, 11) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				o, l := driven(t)
				m := &machine{set: session.NewSet(wrap(memory.New()), o), ledger: l, logs: map[string]*modelled{}}
				defer m.set.Close()
				m.set.AddHook(func(context.Context, *session.Session, []event.Event) error {
					if m.veto {
						return errors.New("vetoed")
					}
					return nil
				})
				rt.Repeat(map[string]func(*rapid.T){
					"create":  m.create,
					"append":  m.appendOne,
					"batch":   m.appendBatch,
					"shorten": m.shorten,
					"repeat":  m.repeat,
					"veto":    func(t *rapid.T) { m.veto = rapid.IntRange(0, 3).Draw(t, "veto") == 0 },
					"recover": m.recover,
					"fork":    m.fork,
					"open":    m.open,
					"detach":  m.detach,
					"delete":  m.delete,
					"look":    m.look,
					"":        m.check,
				})
			})
		})
	}
}
