package logtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// kit is a store under test with the steps that the laws are told in. Steps fail the test when the store refuses them.
type kit struct {
	testing.TB
	eventlog.Store
}

func life(id string) eventlog.Life { return eventlog.Life{ID: id} }

// ev makes an event whose data tells it from others.
func ev(typ string, seq int64) event.Event {
	return event.Event{Type: typ, Seq: seq, Time: 1000 + seq, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq))}
}

// row makes events from seq from on, one for each type.
func row(from int64, types ...string) []event.Event {
	var events []event.Event
	for i, typ := range types {
		events = append(events, ev(typ, from+int64(i)))
	}
	return events
}

// several is a type n times over.
func several(typ string, n int) []string { return slices.Repeat([]string{typ}, n) }

func pull(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (k kit) create(id string, events ...event.Event) eventlog.Info {
	k.Helper()
	info, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: id, CreatedAt: 1}, Events: pull(events)})
	if err != nil {
		k.Fatalf("Create(%s): %v", id, err)
	}
	return info
}

func (k kit) append(id string, events ...event.Event) eventlog.Commit {
	k.Helper()
	c, err := k.Append(k.Context(), eventlog.Batch{Life: life(id), Events: events})
	if err != nil {
		k.Fatalf("Append(%s, seq %d): %v", id, events[0].Seq, err)
	}
	return c
}

func (k kit) delete(id string) {
	k.Helper()
	if err := k.Delete(k.Context(), life(id)); err != nil {
		k.Fatalf("Delete(%s): %v", id, err)
	}
}

func (k kit) info(id string) eventlog.Info {
	k.Helper()
	info, err := k.Info(k.Context(), id)
	if err != nil {
		k.Fatalf("Info(%s): %v", id, err)
	}
	return info
}

// read follows a query to its end and checks the laws of pages on the way.
func (k kit) read(q eventlog.Query) []event.Event {
	k.Helper()
	var all []event.Event
	end := int64(-1)
	for {
		page, err := k.Read(k.Context(), q)
		if err != nil {
			k.Fatalf("Read(%+v): %v", q, err)
		}
		if end < 0 {
			end = page.End
		} else if q.To > 0 && page.End != end {
			k.Fatalf("Read(%+v): the end moved from %d to %d", q, end, page.End)
		}
		if page.Incarnation == "" {
			k.Fatalf("Read(%+v): the page names no incarnation", q)
		}
		k.checkPage(q, page)
		all = append(all, page.Events...)
		if page.Next >= page.End {
			return all
		}
		if page.Next <= q.From {
			k.Fatalf("Read(%+v): Next %d does not rise and the end is %d", q, page.Next, page.End)
		}
		q.From, q.To = page.Next, end
	}
}

func (k kit) checkPage(q eventlog.Query, page eventlog.Page) {
	k.Helper()
	if q.Limit > 0 && len(page.Events) > q.Limit {
		k.Fatalf("Read(%+v): %d events, more than the limit", q, len(page.Events))
	}
	size, last := 0, q.From-1
	for _, e := range page.Events {
		size += len(e.Data)
		if e.Seq <= last {
			k.Fatalf("Read(%+v): seq %d after %d", q, e.Seq, last)
		}
		last = e.Seq
	}
	if last >= page.Next {
		k.Fatalf("Read(%+v): Next %d is not beyond seq %d", q, page.Next, last)
	}
	if q.MaxBytes > 0 && len(page.Events) > 1 && size > q.MaxBytes {
		k.Fatalf("Read(%+v): %d bytes of data in %d events, more than the limit", q, size, len(page.Events))
	}
}

// tail follows a tail to its end and checks the laws of pages on the way.
func (k kit) tail(q eventlog.TailQuery) []eventlog.TailEvent {
	k.Helper()
	var all []eventlog.TailEvent
	for {
		page, err := k.Tail(k.Context(), q)
		if err != nil {
			k.Fatalf("Tail(%+v): %v", q, err)
		}
		if q.Limit > 0 && len(page.Events) > q.Limit {
			k.Fatalf("Tail(%+v): %d events, more than the limit", q, len(page.Events))
		}
		last := q.After
		for _, e := range page.Events {
			if e.Position <= last {
				k.Fatalf("Tail(%+v): position %d after %d", q, e.Position, last)
			}
			last = e.Position
		}
		if page.Position < last {
			k.Fatalf("Tail(%+v): Position %d is below that of an event, %d", q, page.Position, last)
		}
		all = append(all, page.Events...)
		if page.Position >= page.End {
			return all
		}
		if page.Position <= q.After {
			k.Fatalf("Tail(%+v): Position %d does not rise and the end is %d", q, page.Position, page.End)
		}
		q.After = page.Position
	}
}

// list follows a listing to its end.
func (k kit) list(limit int) []eventlog.Info {
	k.Helper()
	var all []eventlog.Info
	q := eventlog.ListQuery{Limit: limit}
	for {
		page, err := k.List(k.Context(), q)
		if err != nil {
			k.Fatalf("List(%+v): %v", q, err)
		}
		if limit > 0 && len(page.Logs) > limit {
			k.Fatalf("List(%+v): %d logs, more than the limit", q, len(page.Logs))
		}
		all = append(all, page.Logs...)
		if page.Cursor == "" {
			return all
		}
		if page.Cursor == q.Cursor {
			k.Fatalf("List(%+v): the cursor does not move", q)
		}
		q.Cursor = page.Cursor
	}
}

// holds checks that a log has exactly these events.
func (k kit) holds(id string, want []event.Event) {
	k.Helper()
	if got := k.info(id).Seq; got != int64(len(want)) {
		k.Fatalf("log %s has seq %d, want %d", id, got, len(want))
	}
	k.same("the log "+id, k.read(eventlog.Query{Life: life(id)}), want)
}

func (k kit) same(what string, got, want []event.Event) {
	k.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		k.Fatalf("%s:\n got %s\nwant %s", what, brief(got), brief(want))
	}
}

// brief tells a list of events without its data, unless it is short.
func brief(events []event.Event) string {
	if len(events) <= 4 {
		return fmt.Sprintf("%+v", events)
	}
	out := fmt.Sprintf("%d events:", len(events))
	for i, e := range events {
		if i == 40 {
			return out + " …"
		}
		out += fmt.Sprintf(" %d:%s", e.Seq, e.Type)
	}
	return out
}

// wantErr checks that err is of a type and returns it.
func wantErr[E error](k kit, what string, err error) E {
	k.Helper()
	var want E
	if !errors.As(err, &want) {
		k.Fatalf("%s: error %v (%T), want a %T", what, err, err, want)
	}
	return want
}

func wantIs(k kit, what string, err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("%s: error %v, want %v", what, err, want)
	}
}
