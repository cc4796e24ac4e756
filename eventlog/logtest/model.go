package logtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// model plays random histories against the store and against a list of what must be there. All histories use one
// store, as opening many would be slow, with ids of their own.
func model(k kit) {
	run := 0
	rapid.Check(k.TB, func(t *rapid.T) {
		run++
		m := &machine{kit: kit{TB: rapidTB{TB: k.TB, T: t}, Store: k.Store}, prefix: fmt.Sprintf("r%d-", run)}
		m.logs = map[string]*modelLog{}
		m.start = m.position()
		defer m.clear()
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"create":   m.createOne,
			"append":   m.appendOne,
			"conflict": m.conflictOne,
			"repeat":   m.repeatOne,
			"read":     m.readOne,
			"tail":     m.tailOne,
			"delete":   m.deleteOne,
		})
	})
}

type modelLog struct {
	life     eventlog.Life
	events   []event.Event
	position int64
	keys     map[string]eventlog.KeyRecord
}

type machine struct {
	kit
	prefix string
	start  int64
	logs   map[string]*modelLog
	// history is what was committed, deleted lives included.
	history []eventlog.TailEvent
	past    []eventlog.Life
}

var (
	modelIDs   = rapid.SampledFrom([]string{"a", "b", "c"})
	modelTypes = rapid.SampledFrom([]string{"x", "y", "z"})
)

// position goes to the end of the tail.
func (m *machine) position() int64 {
	q := eventlog.TailQuery{Types: []string{}}
	for {
		page, err := m.Tail(m.Context(), q)
		if err != nil {
			m.Fatalf("Tail: %v", err)
		}
		if q.After = page.Position; page.Position >= page.End {
			return page.Position
		}
	}
}

func (m *machine) clear() {
	for id := range m.logs {
		m.delete(id)
	}
}

func (m *machine) batch(t *rapid.T, from int64, min int) []event.Event {
	events := row(from, rapid.SliceOfN(modelTypes, min, 5).Draw(t, "types")...)
	for i := range events {
		if rapid.Bool().Draw(t, "large") {
			events[i].Data = fmt.Appendf(nil, `"%s"`, strings.Repeat("d", rapid.IntRange(0, 200).Draw(t, "size")))
		}
	}
	return events
}

// commit notes events whose last one has the position.
func (m *machine) commit(l *modelLog, events []event.Event, position int64) {
	if position <= l.position {
		m.Fatalf("position %d after %d", position, l.position)
	}
	for i, e := range events {
		at := position - int64(len(events)-1-i)
		m.history = append(m.history, eventlog.TailEvent{Life: l.life, Position: at, Event: e})
	}
	l.events, l.position = append(l.events, events...), position
}

// pick takes a log that is there, or makes one: a step that is skipped would end the history early.
func (m *machine) pick(t *rapid.T) (string, *modelLog) {
	if len(m.logs) == 0 {
		m.createOne(t)
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.logs))).Draw(t, "log")
	return id, m.logs[id]
}

func (m *machine) createOne(t *rapid.T) {
	id := m.prefix + modelIDs.Draw(t, "id")
	events := m.batch(t, 0, 0)
	info, err := m.Create(m.Context(), eventlog.Creation{Header: event.Header{ID: id}, Events: pull(events)})
	if m.logs[id] != nil {
		wantErr[*eventlog.ExistsError](m.kit, "Create", err)
		return
	}
	if err != nil || info.Seq != int64(len(events)) {
		m.Fatalf("Create: %+v, %v", info, err)
	}
	l := &modelLog{life: eventlog.Life{ID: id, Incarnation: info.Incarnation}, keys: map[string]eventlog.KeyRecord{}}
	m.logs[id] = l
	m.commit(l, events, info.Position)
}

func (m *machine) appendOne(t *rapid.T) {
	_, l := m.pick(t)
	m.appendTo(t, l, rapid.Bool().Draw(t, "keyed"))
}

func (m *machine) appendTo(t *rapid.T, l *modelLog, keyed bool) {
	b := eventlog.Batch{Life: l.life, Events: m.batch(t, int64(len(l.events)), 1)}
	if keyed {
		b.Key, b.Digest = fmt.Sprint("key", len(l.keys)), "d"
	}
	c, err := m.Append(m.Context(), b)
	if err != nil || c.Repeated || c.First != int64(len(l.events)) || c.Seq != c.First+int64(len(b.Events)) {
		m.Fatalf("Append: %+v, %v", c, err)
	}
	m.commit(l, b.Events, c.Position)
	if keyed {
		l.keys[b.Key] = eventlog.KeyRecord{Digest: b.Digest, Commit: c}
	}
}

func (m *machine) conflictOne(t *rapid.T) {
	_, l := m.pick(t)
	from := rapid.Int64Range(0, int64(len(l.events))+3).Draw(t, "from")
	if from == int64(len(l.events)) {
		from++
	}
	_, err := m.Append(m.Context(), eventlog.Batch{Life: l.life, Events: row(from, "x")})
	if e := wantErr[*eventlog.SeqConflictError](m.kit, "Append", err); e.Seq != int64(len(l.events)) {
		m.Fatalf("the conflict names %d, the head is %d", e.Seq, len(l.events))
	}
}

func (m *machine) repeatOne(t *rapid.T) {
	_, l := m.pick(t)
	if len(l.keys) == 0 {
		m.appendTo(t, l, true)
	}
	key := fmt.Sprint("key", rapid.IntRange(0, len(l.keys)-1).Draw(t, "key"))
	b := eventlog.Batch{Life: l.life, Events: m.batch(t, rapid.Int64Range(0, 9).Draw(t, "from"), 1), Key: key, Digest: "d"}
	c, err := m.Append(m.Context(), b)
	if err != nil || !c.Repeated {
		m.Fatalf("repeated: %+v, %v", c, err)
	}
	c.Repeated = false
	if c != l.keys[key].Commit {
		m.Fatalf("repeated %+v, the first was %+v", c, l.keys[key].Commit)
	}
	b.Digest = "other"
	_, err = m.Append(m.Context(), b)
	wantErr[*eventlog.KeyReusedError](m.kit, "another digest", err)
	if record, ok, err := m.Lookup(m.Context(), l.life, key); err != nil || !ok || record != l.keys[key] {
		m.Fatalf("Lookup: %+v, %v, %v", record, ok, err)
	}
}

func (m *machine) readOne(t *rapid.T) {
	_, l := m.pick(t)
	q := eventlog.Query{
		Life:     l.life,
		From:     rapid.Int64Range(0, int64(len(l.events))+2).Draw(t, "from"),
		To:       rapid.Int64Range(-1, int64(len(l.events))+2).Draw(t, "to"),
		Limit:    rapid.IntRange(0, 4).Draw(t, "limit"),
		MaxBytes: rapid.SampledFrom([]int{0, 1, 150, 600}).Draw(t, "bytes"),
	}
	if rapid.Bool().Draw(t, "filtered") {
		q.Types = rapid.SliceOfN(modelTypes, 0, 3).Draw(t, "types")
	}
	m.same(fmt.Sprintf("Read(%+v)", q), m.read(q), match(l.events, q))
}

func (m *machine) tailOne(t *rapid.T) {
	after := m.start
	if len(m.history) > 0 {
		after = max(after, m.history[rapid.IntRange(0, len(m.history)-1).Draw(t, "after")].Position-1)
	}
	q := eventlog.TailQuery{After: after, Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "filtered") {
		q.Types = rapid.SliceOfN(modelTypes, 0, 3).Draw(t, "types")
	}
	var want []eventlog.TailEvent
	for _, e := range m.history {
		l := m.logs[e.Life.ID]
		if e.Position > after && l != nil && l.life == e.Life && (q.Types == nil || slices.Contains(q.Types, e.Event.Type)) {
			want = append(want, e)
		}
	}
	m.sameTail(fmt.Sprintf("Tail(%+v)", q), m.tail(q), want)
}

func (m *machine) deleteOne(t *rapid.T) {
	id, l := m.pick(t)
	if err := m.Delete(m.Context(), l.life); err != nil {
		m.Fatalf("Delete: %v", err)
	}
	delete(m.logs, id)
	m.past = append(m.past, l.life)
}

// check holds after every step.
func (m *machine) check(*rapid.T) {
	var want []*modelLog
	for id, l := range m.logs {
		info := m.info(id)
		if info.Seq != int64(len(l.events)) || info.Incarnation != l.life.Incarnation || info.Position != l.position {
			m.Fatalf("Info(%s): %+v, want seq %d at %d of %s", id, info, len(l.events), l.position, l.life.Incarnation)
		}
		want = append(want, l)
	}
	slices.SortFunc(want, func(a, b *modelLog) int { return int(b.position - a.position) })
	listed := ids(m.list(2))
	if len(listed) != len(want) {
		m.Fatalf("listed %q, want %d logs", listed, len(want))
	}
	for i, l := range want {
		if listed[i] != l.life.ID {
			m.Fatalf("listed %q, want %s at %d", listed, l.life.ID, i)
		}
	}
	if len(m.past) > 0 {
		last := m.past[len(m.past)-1]
		if _, err := m.Read(m.Context(), eventlog.Query{Life: last}); err == nil {
			m.Fatalf("%+v is read after its deletion", last)
		}
	}
}
