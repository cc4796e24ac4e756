package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// counter counts the events of the types, all when there are none; its value is {"n": count, "last": seq of the last}.
type counter struct{ slow func(seq int64) }

type tally struct{ N, Last int64 }

const tallySchema = `{"type":"object","properties":{"n":{"type":"integer"},"last":{"type":"integer"}},"required":["n","last"],"additionalProperties":false}`

func (counter) Init() (unit.State, error) { return tally{0, -1}, nil }
func (c counter) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if c.slow != nil {
		c.slow(ev.Seq)
	}
	return tally{s.(tally).N + 1, ev.Seq}, true, nil
}
func (counter) View(s unit.State) (json.RawMessage, error) { return counter{}.Encode(s) }
func (counter) Encode(s unit.State) (json.RawMessage, error) {
	return fmt.Appendf(nil, `{"n":%d,"last":%d}`, s.(tally).N, s.(tally).Last), nil
}
func (counter) Decode(raw json.RawMessage) (unit.State, error) {
	n, _ := event.Integer(event.Lookup(raw, "n"))
	last, ok := event.Integer(event.Lookup(raw, "last"))
	if !ok {
		return nil, fmt.Errorf("%s is no tally", raw)
	}
	return tally{n, last}, nil
}

func counting(key string, types ...string) unit.Definition {
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: json.RawMessage(tallySchema), ViewSchema: json.RawMessage(tallySchema), Events: types, Inline: counter{}}
}

// counted is the value of a counter of the types on a log of these.
func counted(log []string, seq int64, types ...string) string {
	n, last := 0, -1
	for i, typ := range log[:seq+1] {
		if types == nil || slices.Contains(types, typ) {
			n, last = n+1, i
		}
	}
	return fmt.Sprintf(`{"n":%d,"last":%d}`, n, last)
}

// rowStore is a store in memory whose rows can be held, failed, counted and lied about.
type rowStore struct {
	*logtest.SlowStore
	rows eventlog.RowStore

	mu sync.Mutex
	// saving and loading are called before rows are written and read; their errors are those of the store.
	saving  func(ctx context.Context, life eventlog.Life, rows []eventlog.Row) error
	loading func() error
	// alter changes what is read.
	alter func(*eventlog.RowSet)
	saved [][]eventlog.Row
	loads int
}

func newStore(t testing.TB) *rowStore {
	m := memory.New()
	t.Cleanup(func() { m.Close() })
	return &rowStore{SlowStore: logtest.Slow(m), rows: m}
}

func (s *rowStore) hooks() (saving func(context.Context, eventlog.Life, []eventlog.Row) error, loading func() error, alter func(*eventlog.RowSet)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saving, s.loading, s.alter
}

func (s *rowStore) onSave(f func(context.Context, eventlog.Life, []eventlog.Row) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = f
}

func (s *rowStore) onLoad(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = f
}

func (s *rowStore) onAlter(f func(*eventlog.RowSet)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alter = f
}

func (s *rowStore) load(set *eventlog.RowSet, err error) error {
	s.mu.Lock()
	s.loads++
	s.mu.Unlock()
	_, loading, alter := s.hooks()
	if loading != nil {
		if err := loading(); err != nil {
			return err
		}
	}
	if alter != nil && err == nil {
		set.Rows = slices.Clone(set.Rows)
		alter(set)
	}
	return err
}

func (s *rowStore) Rows(ctx context.Context, l eventlog.Life) (eventlog.RowSet, error) {
	set, err := s.rows.Rows(ctx, l)
	return set, s.load(&set, err)
}

func (s *rowStore) RowsOf(ctx context.Context, ids []string) ([]eventlog.RowSet, error) {
	sets, err := s.rows.RowsOf(ctx, ids)
	for i := range sets {
		err = s.load(&sets[i], err)
	}
	return sets, err
}

func (s *rowStore) SaveRows(ctx context.Context, l eventlog.Life, rows []eventlog.Row) error {
	if saving, _, _ := s.hooks(); saving != nil {
		if err := saving(ctx, l, rows); err != nil {
			return err
		}
	}
	err := s.rows.SaveRows(ctx, l, rows)
	if err == nil {
		s.mu.Lock()
		s.saved = append(s.saved, rows)
		s.mu.Unlock()
	}
	return err
}

func (s *rowStore) PastRow(ctx context.Context, l eventlog.Life, key string, seq int64) (eventlog.Row, bool, error) {
	return s.rows.PastRow(ctx, l, key, seq)
}
func (s *rowStore) SavePast(ctx context.Context, l eventlog.Life, rows []eventlog.Row) error {
	return s.rows.SavePast(ctx, l, rows)
}
func (s *rowStore) DropRows(ctx context.Context, l eventlog.Life, keys ...string) error {
	return s.rows.DropRows(ctx, l, keys...)
}

// cuts are those of the writes up to now, in order; a write of several cuts counts by its highest.
func (s *rowStore) cuts() (cuts []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rows := range s.saved {
		cut := int64(-1)
		for _, r := range rows {
			cut = max(cut, r.Cut)
		}
		cuts = append(cuts, cut)
	}
	return cuts
}

func (s *rowStore) create(t testing.TB, id string, types ...string) eventlog.Life {
	t.Helper()
	info, err := s.SlowStore.Store.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: id}, Events: sequence(types)})
	if err != nil {
		t.Fatal(err)
	}
	return lifeOf(info)
}

func sequence(types []string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i, typ := range types {
			if !yield(plain(int64(i), typ), nil) {
				return
			}
		}
	}
}

func plain(seq int64, typ string) event.Event {
	return event.Event{Type: typ, Seq: seq, Time: 1, Data: json.RawMessage(`{}`)}
}

func (s *rowStore) append(t testing.TB, life eventlog.Life, from int64, types ...string) []event.Event {
	t.Helper()
	var evs []event.Event
	for i, typ := range types {
		evs = append(evs, plain(from+int64(i), typ))
	}
	if _, err := s.SlowStore.Store.Append(context.Background(), eventlog.Batch{Life: life, Events: evs}); err != nil {
		t.Fatal(err)
	}
	return evs
}

// storeLogs reads the store as a host does.
type storeLogs struct{ *rowStore }

func (l storeLogs) Set(event.Header) string { return "" }

func (l storeLogs) Log(life eventlog.Life) registry.Log { return storeLog{l.rowStore, life} }

type storeLog struct {
	s    *rowStore
	life eventlog.Life
}

func (l storeLog) ID() string          { return l.life.ID }
func (l storeLog) Incarnation() string { return l.life.Incarnation }
func (l storeLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	page, err := l.s.Read(ctx, eventlog.Query{Life: l.life, From: from, To: to, Types: types, Limit: 256})
	return page.Events, page.Next, err
}
func (l storeLog) Past(ctx context.Context, key string, seq int64) (registry.Row, bool, error) {
	stored, ok, err := l.s.PastRow(ctx, l.life, key, seq)
	if err != nil || !ok {
		return registry.Row{}, false, err
	}
	row, err := Decode(stored)
	return row, err == nil, nil
}

// world is a registry and a cache over a store.
type world struct {
	t     testing.TB
	store *rowStore
	units *registry.Registry
	w     *Writer
	r     *Reader
}

func given(t testing.TB, o Options, defs ...unit.Definition) *world {
	return over(t, newStore(t), o, defs...)
}

func over(t testing.TB, s *rowStore, o Options, defs ...unit.Definition) *world {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &world{t: t, store: s, units: registry.New(registry.Options{Epoch: "e.1"})}
	for _, d := range defs {
		w.register(d)
	}
	w.w = NewWriter(s, o)
	w.r = NewReader(storeLogs{s}, w.units, w.w, o)
	return w
}

// close is for the end of a bubble; more than once is harmless.
func (w *world) close() {
	w.r.Close()
	w.w.Close()
	w.units.Close()
}

func (w *world) register(d unit.Definition) *registry.Registration {
	w.t.Helper()
	g, err := w.units.Register(registry.Registrant{Plugin: "p"}, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// read reads all keys and checks them against key, value pairs.
func (w *world) read(id string, want ...string) registry.Block {
	w.t.Helper()
	_, b, err := w.r.Read(context.Background(), id)
	if err != nil {
		w.t.Fatalf("read %s: %v", id, err)
	}
	if len(b.Values) != len(want)/2 {
		w.t.Errorf("read %s: %s", id, b.AppendJSON(nil))
	}
	for i := 0; i < len(want); i += 2 {
		if string(b.Values[want[i]]) != want[i+1] {
			w.t.Errorf("%s is %s, want %s (%+v)", want[i], b.Values[want[i]], want[i+1], b.Unavailable)
		}
	}
	return b
}

func many(n int, types ...string) (all []string) {
	for i := range n {
		all = append(all, types[i%len(types)])
	}
	return all
}
