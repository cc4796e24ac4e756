package logtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func dense(k kit) {
	last := k.create("a").Position
	var want []event.Event
	for n := 1; n <= 6; n++ {
		batch := row(int64(len(want)), several("x", n)...)
		c := k.append("a", batch...)
		if c.First != int64(len(want)) || c.Seq != c.First+int64(n) || c.Repeated || c.Time < 1 {
			k.Fatalf("commit %+v of %d events at %d", c, n, len(want))
		}
		if c.Position <= last {
			k.Fatalf("position %d after %d", c.Position, last)
		}
		last = c.Position
		want = append(want, batch...)
		if info := k.info("a"); info.Seq != c.Seq || info.Position != c.Position || info.UpdatedAt != c.Time {
			k.Fatalf("info %+v after commit %+v", info, c)
		}
	}
	k.holds("a", want)
}

func conflict(k kit) {
	want := row(0, "x", "x", "x")
	k.create("a", want...)
	before := k.info("a")
	for _, from := range []int64{0, 1, 2, 4, 100} {
		_, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: row(from, "y", "y", "y")})
		e := wantErr[*eventlog.SeqConflictError](k, "a batch from another seq", err)
		if e.ID != "a" || e.Seq != 3 || e.Expected != from {
			k.Fatalf("conflict %+v, want a at 3, expected %d", e, from)
		}
	}
	k.holds("a", want)
	if after := k.info("a"); after.Position != before.Position || after.UpdatedAt != before.UpdatedAt {
		k.Fatalf("a conflict moved the log: %+v, was %+v", after, before)
	}
	k.append("a", row(3, "y")...)
}

func badBatch(k kit) {
	k.create("a")
	for what, events := range map[string][]event.Event{
		"no events":     nil,
		"a gap":         {ev("x", 0), ev("x", 2)},
		"a doubled seq": {ev("x", 0), ev("x", 0)},
		"going back":    {ev("x", 0), ev("x", 1), ev("x", 0)},
	} {
		_, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: events})
		wantErr[*eventlog.InvalidError](k, what, err)
	}
	k.holds("a", nil)
}

func appendNotFound(k kit) {
	_, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: row(0, "x")})
	if e := wantErr[*eventlog.NotFoundError](k, "Append", err); e.ID != "a" {
		k.Fatalf("the error names %q", e.ID)
	}
	k.nothing("a")
}

// oddities are events that a store is tempted to change.
func oddities() []event.Event {
	data := []string{
		`null`, `0`, `""`, `[]`, `{}`, `true`,
		`{"b":1,"a":2,"":{"B":[1.0,1e0,1E+2,0.1234567890123456789,12345678901234567890,1e-400]}}`,
		`"<script>&amp;"`, "\"\u2028\u2029é💥\"", `"\u2028\ud83d\ude00\ud800 \udc00"`, `"\u0000\/\\"`,
		`"` + strings.Repeat("x", 1<<20) + `"`,
	}
	var events []event.Event
	for i, d := range data {
		events = append(events, event.Event{Type: "x", Seq: int64(i), Data: json.RawMessage(d)})
	}
	add := func(e event.Event) {
		e.Seq = int64(len(events))
		if e.Type == "" {
			e.Type = "x"
		}
		e.Data = json.RawMessage(`1`)
		events = append(events, e)
	}
	add(event.Event{Time: -1})
	add(event.Event{Time: event.MaxInteger})
	add(event.Event{Time: -event.MaxInteger})
	add(event.Event{Ignorable: true})
	add(event.Event{Op: event.Append()})
	add(event.Event{Op: event.Replace(0, 0)})
	add(event.Event{Op: event.Replace(5, 3), Sources: []int64{5, 3, 4}})
	add(event.Event{Sources: []int64{}})
	add(event.Event{Sources: []int64{0, event.MaxInteger}})
	add(event.Event{Type: "typ/é 💥\u2028'\"%_"})
	add(event.Event{Type: "X"})
	return events
}

func verbatim(k kit) {
	want := oddities()
	half := len(want) / 2
	k.create("a", want[:half]...)
	k.append("a", want[half:]...)
	k.holds("a", want)
	for _, e := range want {
		k.same("one event", k.read(eventlog.Query{Life: life("a"), From: e.Seq, To: e.Seq + 1}), []event.Event{e})
	}
	k.same("the type X", k.read(eventlog.Query{Life: life("a"), Types: []string{"X"}}), want[len(want)-1:])
	var tail []event.Event
	for _, e := range k.tail(eventlog.TailQuery{}) {
		tail = append(tail, e.Event)
	}
	k.same("the tail", tail, want)
}

func headerVerbatim(k kit) {
	line := `{"version":0,"note":{"b":1.0,"a":"<\u2028"},"type":"session","id":"a","createdAt":7,"cwd":"C:\\x"}`
	header, err := event.DecodeHeader([]byte(line))
	if err != nil {
		k.Fatalf("DecodeHeader: %v", err)
	}
	if _, err := k.Create(k.Context(), eventlog.Creation{Header: header}); err != nil {
		k.Fatalf("Create: %v", err)
	}
	stored := k.info("a").Header
	if got := string(stored.AppendJSON(nil)); got != line {
		k.Fatalf("header %s, want %s", got, line)
	}
}

func cancelled(k kit) {
	want := row(0, "x")
	k.create("a", want...)
	before := k.info("a")
	ctx, cancel := context.WithCancel(k.Context())
	midway := func(yield func(event.Event, error) bool) {
		if yield(ev("x", 0), nil) {
			cancel()
			_ = yield(ev("x", 1), nil)
		}
	}
	_, err := k.Create(ctx, eventlog.Creation{Header: event.Header{ID: "b"}, Events: midway})
	wantIs(k, "Create whose context ends on the way", err, context.Canceled)

	calls := map[string]func() error{
		"Create": func() error {
			_, err := k.Create(ctx, eventlog.Creation{Header: event.Header{ID: "b"}, Events: pull(want)})
			return err
		},
		"Append": func() error {
			_, err := k.Append(ctx, eventlog.Batch{Life: life("a"), Events: row(1, "x"), Key: "k", Digest: "d"})
			return err
		},
		"Info":   func() error { _, err := k.Info(ctx, "a"); return err },
		"List":   func() error { _, err := k.List(ctx, eventlog.ListQuery{}); return err },
		"Read":   func() error { _, err := k.Read(ctx, eventlog.Query{Life: life("a")}); return err },
		"Tail":   func() error { _, err := k.Tail(ctx, eventlog.TailQuery{}); return err },
		"Lookup": func() error { _, _, err := k.Lookup(ctx, life("a"), "k"); return err },
		"Delete": func() error { return k.Delete(ctx, life("a")) },
	}
	for name, call := range calls {
		wantIs(k, name, call(), context.Canceled)
	}
	k.holds("a", want)
	if after := k.info("a"); after.Position != before.Position || after.Incarnation != before.Incarnation {
		k.Fatalf("the log moved: %+v, was %+v", after, before)
	}
	if _, ok, err := k.Lookup(k.Context(), life("a"), "k"); ok || err != nil {
		k.Fatalf("the key of a cancelled append is known: %v, %v", ok, err)
	}
	_, err = k.Info(k.Context(), "b")
	wantErr[*eventlog.NotFoundError](k, "the log of a cancelled creation", err)
	k.append("a", row(1, "x")...)
	k.create("b")
}

func keyed(from int64, key, digest string, types ...string) eventlog.Batch {
	return eventlog.Batch{Life: life("a"), Events: row(from, types...), Key: key, Digest: digest}
}

func keyRepeated(k kit) {
	k.create("a")
	first, err := k.Append(k.Context(), keyed(0, "k", "d", "x", "x"))
	if err != nil || first.Repeated {
		k.Fatalf("first append: %+v, %v", first, err)
	}
	want := slices.Concat(row(0, "x", "x"), row(2, "y"))
	k.append("a", row(2, "y")...)
	// The answer got lost and the log went on: the key is looked at before the seq, whatever the seq is now.
	for _, from := range []int64{0, 2, 3, 9} {
		again, err := k.Append(k.Context(), keyed(from, "k", "d", "x", "x"))
		if err != nil || !again.Repeated {
			k.Fatalf("repeated from %d: %+v, %v", from, again, err)
		}
		again.Repeated = false
		if again != first {
			k.Fatalf("repeated from %d: %+v, the first was %+v", from, again, first)
		}
	}
	k.holds("a", want)
	record, ok, err := k.Lookup(k.Context(), life("a"), "k")
	if err != nil || !ok || record.Digest != "d" || record.Commit != first {
		k.Fatalf("Lookup: %+v, %v, %v, want %+v", record, ok, err, first)
	}
	if _, ok, err := k.Lookup(k.Context(), life("a"), "K"); ok || err != nil {
		k.Fatalf("Lookup of another key: %v, %v", ok, err)
	}
	// No key is no key, not the key "".
	k.append("a", row(3, "x")...)
	if _, ok, err := k.Lookup(k.Context(), life("a"), ""); ok || err != nil {
		k.Fatalf("Lookup of no key: %v, %v", ok, err)
	}
}

func keyReused(k kit) {
	k.create("a")
	if _, err := k.Append(k.Context(), keyed(0, "k", "d", "x")); err != nil {
		k.Fatalf("Append: %v", err)
	}
	for _, from := range []int64{0, 1, 5} {
		_, err := k.Append(k.Context(), keyed(from, "k", "other", "x"))
		if e := wantErr[*eventlog.KeyReusedError](k, "another digest", err); e.ID != "a" || e.Key != "k" {
			k.Fatalf("%+v, want log a and key k", e)
		}
	}
	k.holds("a", row(0, "x"))
}

func keyOfFailure(k kit) {
	k.create("a")
	_, err := k.Append(k.Context(), keyed(3, "k", "d", "x"))
	wantErr[*eventlog.SeqConflictError](k, "another seq", err)
	if _, ok, err := k.Lookup(k.Context(), life("a"), "k"); ok || err != nil {
		k.Fatalf("the key of a failed append is known: %v, %v", ok, err)
	}
	c, err := k.Append(k.Context(), keyed(0, "k", "other", "x"))
	if err != nil || c.Repeated {
		k.Fatalf("Append: %+v, %v", c, err)
	}
}

func keyPerLog(k kit) {
	k.create("a")
	k.create("b")
	for _, id := range []string{"a", "b"} {
		b := keyed(0, "k", "digest of "+id, "x")
		b.Life.ID = id
		if c, err := k.Append(k.Context(), b); err != nil || c.Repeated {
			k.Fatalf("Append to %s: %+v, %v", id, c, err)
		}
	}
	_, _, err := k.Lookup(k.Context(), life("c"), "k")
	wantErr[*eventlog.NotFoundError](k, "Lookup in no log", err)
}

func keyAlone(k kit) {
	k.create("a", row(0, "x", "x")...)
	before := k.info("a")
	alone := eventlog.Batch{Life: life("a"), Key: "k", Digest: "d"}
	first, err := k.Append(k.Context(), alone)
	if err != nil || first.First != 2 || first.Seq != 2 || first.Position != before.Position || first.Time < 1 || first.Repeated {
		k.Fatalf("a key alone: %+v, %v", first, err)
	}
	if after := k.info("a"); after.Seq != 2 || after.Position != before.Position || after.UpdatedAt != before.UpdatedAt {
		k.Fatalf("a key alone moved the log: %+v, was %+v", after, before)
	}
	k.append("a", row(2, "y")...)
	again, err := k.Append(k.Context(), alone)
	if err != nil || !again.Repeated || again.First != 2 || again.Seq != 2 {
		k.Fatalf("repeated: %+v, %v", again, err)
	}
	_, err = k.Append(k.Context(), keyed(3, "k", "other", "x"))
	wantErr[*eventlog.KeyReusedError](k, "events with a key that stands alone", err)
	k.append("a", row(3, "y")...)
	if _, err = k.Append(k.Context(), keyed(4, "events", "d", "x")); err != nil {
		k.Fatalf("Append: %v", err)
	}
	_, err = k.Append(k.Context(), eventlog.Batch{Life: life("a"), Key: "events", Digest: "other"})
	wantErr[*eventlog.KeyReusedError](k, "the key of events alone", err)
	_, err = k.Append(k.Context(), eventlog.Batch{Life: life("b"), Key: "k", Digest: "d"})
	wantErr[*eventlog.NotFoundError](k, "a key in no log", err)
}

func keyAnswer(k kit) {
	k.create("a")
	long := strings.Repeat("answer ", 100_000)
	for i, one := range []struct {
		types  []string
		answer string
	}{{[]string{"x"}, `{"text":"done"}`}, {nil, "\x00\xff and <more>"}, {[]string{"x", "y"}, long}, {[]string{"x"}, ""}} {
		b := keyed(k.info("a").Seq, fmt.Sprint(i), "d", one.types...)
		b.Answer = one.answer
		first, err := k.Append(k.Context(), b)
		if err != nil {
			k.Fatalf("Append: %v", err)
		}
		b.Answer = "the answer of a repetition, which nobody has heard"
		if again, err := k.Append(k.Context(), b); err != nil || !again.Repeated {
			k.Fatalf("repeated: %+v, %v", again, err)
		}
		record, ok, err := k.Lookup(k.Context(), life("a"), b.Key)
		if err != nil || !ok || record != (eventlog.KeyRecord{Digest: "d", Answer: one.answer, Commit: first}) {
			k.Fatalf("Lookup: %.100v, %v, %v, want %.100q and %+v", record, ok, err, one.answer, first)
		}
	}
}

func keyOfCreation(k kit) {
	for id, events := range map[string][]event.Event{"empty": nil, "short": row(0, "x", "y"), "long": row(0, several("x", 2500)...)} {
		pulled := int64(0)
		creation := eventlog.Creation{Header: event.Header{ID: id}, Key: "k", Events: func(yield func(event.Event, error) bool) {
			for _, ev := range events {
				pulled++
				if !yield(ev, nil) {
					return
				}
			}
		}, Digest: func() string { return fmt.Sprint("after ", pulled) }}
		info, err := k.Create(k.Context(), creation)
		if err != nil {
			k.Fatalf("Create: %v", err)
		}
		record, ok, err := k.Lookup(k.Context(), eventlog.Life{ID: id, Incarnation: info.Incarnation}, "k")
		want := eventlog.KeyRecord{Digest: fmt.Sprint("after ", len(events)), Commit: eventlog.Commit{Seq: info.Seq, Position: info.Position, Time: info.UpdatedAt}}
		if err != nil || !ok || record != want {
			k.Fatalf("the key of %s: %+v, %v, %v, want %+v", id, record, ok, err, want)
		}
		_, err = k.Append(k.Context(), eventlog.Batch{Life: life(id), Events: row(info.Seq, "x"), Key: "k", Digest: "other"})
		wantErr[*eventlog.KeyReusedError](k, "another request with the key", err)
		creation.Events = pull(nil)
		_, err = k.Create(k.Context(), creation)
		wantErr[*eventlog.ExistsError](k, "the creation again", err)
		k.delete(id)
		if again := k.create(id); again.Seq != 0 {
			k.Fatalf("the next life has %d events", again.Seq)
		}
		if _, ok, err := k.Lookup(k.Context(), life(id), "k"); ok || err != nil {
			k.Fatalf("the next life has the key: %v, %v", ok, err)
		}
	}
}
