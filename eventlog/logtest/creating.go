package logtest

import (
	"errors"
	"fmt"
	"iter"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func identity(k kit) {
	first := k.Identity()
	if first.StoreID == "" || first.Boot < 1 {
		k.Fatalf("identity %+v: an id and a count from 1 are needed", first)
	}
	k.create("a")
	if again := k.Identity(); again != first {
		k.Fatalf("identity %+v, before it was %+v", again, first)
	}
}

func created(k kit) {
	seed, depth, preset := int64(2), int64(1), "coding"
	header := event.Header{
		ID: "a.b_c-D", CreatedAt: 12, CWD: "/home", ParentSession: "p", SeedLength: &seed, Origin: "subagent",
		DelegationDepth: &depth, AgentPreset: &preset,
	}
	events := row(0, "x", "y", "x")
	info, err := k.Create(k.Context(), eventlog.Creation{Header: header, FirstLiveSeq: 2, Events: pull(events)})
	if err != nil {
		k.Fatalf("Create: %v", err)
	}
	switch {
	case info.Seq != 3:
		k.Fatalf("seq %d, want 3", info.Seq)
	case info.FirstLiveSeq != 2:
		k.Fatalf("first live seq %d, want 2", info.FirstLiveSeq)
	case info.Incarnation == "" || info.Position < 1 || info.UpdatedAt < 1:
		k.Fatalf("%+v: incarnation, position and time are needed", info)
	}
	again := k.info(header.ID)
	for _, got := range []eventlog.Info{info, again} {
		h := got.Header
		if h.ID != header.ID || h.CreatedAt != 12 || h.CWD != "/home" || h.ParentSession != "p" || h.Origin != "subagent" ||
			h.SeedLength == nil || *h.SeedLength != 2 || h.DelegationDepth == nil || *h.DelegationDepth != 1 ||
			h.AgentPreset == nil || *h.AgentPreset != "coding" {
			k.Fatalf("header %+v, want %+v", h, header)
		}
	}
	info.Header, again.Header = event.Header{}, event.Header{}
	if again.Incarnation != info.Incarnation || again.Seq != info.Seq || again.FirstLiveSeq != 2 ||
		again.Position != info.Position || again.UpdatedAt != info.UpdatedAt {
		k.Fatalf("Info %+v, Create said %+v", again, info)
	}
	k.holds(header.ID, events)

	bare, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "bare"}})
	if err != nil || bare.Seq != 0 || bare.Position <= info.Position {
		k.Fatalf("a log without events: %+v, %v", bare, err)
	}
	if bare.Header.SeedLength != nil || bare.Header.DelegationDepth != nil || bare.Header.AgentPreset != nil {
		k.Fatalf("a bare header grew fields: %+v", bare.Header)
	}
	k.holds("bare", nil)
}

func idTaken(k kit) {
	events := row(0, "x")
	first := k.create("a", events...)
	_, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: pull(row(0, "y", "y"))})
	if e := wantErr[*eventlog.ExistsError](k, "the same id", err); e.ID != "a" {
		k.Fatalf("the error names %q", e.ID)
	}
	k.holds("a", events)
	if got := k.info("a"); got.Incarnation != first.Incarnation || got.Position != first.Position {
		k.Fatalf("the log changed: %+v, was %+v", got, first)
	}
	// Ids are told apart by every byte.
	k.create("A", row(0, "z")...)
	k.holds("a", events)
}

func creationFails(k kit) {
	broken := errors.New("the source broke")
	failing := func(yield func(event.Event, error) bool) {
		_ = yield(ev("x", 0), nil) && yield(ev("x", 1), nil) && yield(event.Event{}, broken)
	}
	_, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: failing})
	wantIs(k, "a source that fails", err, broken)
	k.nothing("a")

	for what, events := range map[string][]event.Event{
		"seqs from 1":     {ev("x", 1)},
		"a gap":           {ev("x", 0), ev("x", 2)},
		"a doubled seq":   {ev("x", 0), ev("x", 0)},
		"a negative seq":  {ev("x", -1)},
		"seqs going back": {ev("x", 0), ev("x", 1), ev("x", 0)},
	} {
		_, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: pull(events)})
		wantErr[*eventlog.InvalidError](k, what, err)
		k.nothing("a")
	}
	_, err = k.Create(k.Context(), eventlog.Creation{})
	wantErr[*eventlog.InvalidError](k, "no id", err)

	k.create("a", row(0, "x")...)
	k.holds("a", row(0, "x"))
}

// nothing checks that the store is empty and has no such log.
func (k kit) nothing(id string) {
	k.Helper()
	_, err := k.Info(k.Context(), id)
	wantErr[*eventlog.NotFoundError](k, "Info", err)
	if logs := k.list(0); len(logs) > 0 {
		k.Fatalf("%d logs are listed", len(logs))
	}
	if events := k.tail(eventlog.TailQuery{}); len(events) > 0 {
		k.Fatalf("%d events are in the tail", len(events))
	}
}

// A fork creates a log from a read of its parent: a store that waited for itself there would hang.
func creationReads(k kit) {
	events := row(0, several("x", 7)...)
	k.create("parent", events...)
	var source iter.Seq2[event.Event, error] = func(yield func(event.Event, error) bool) {
		for e, err := range eventlog.Scan(k.Context(), k.Store, eventlog.Query{Life: life("parent"), Limit: 2}) {
			if !yield(e, err) {
				return
			}
		}
	}
	if _, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "child"}, Events: source}); err != nil {
		k.Fatalf("Create: %v", err)
	}
	k.holds("child", events)
	k.holds("parent", events)
}

func creationLong(k kit) {
	const n = 3000
	pulled := int64(0)
	source := func(yield func(event.Event, error) bool) {
		for ; pulled < n; pulled++ {
			if !yield(ev(fmt.Sprint("t", pulled%5), pulled), nil) {
				return
			}
		}
	}
	if _, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: source}); err != nil {
		k.Fatalf("Create: %v", err)
	}
	if pulled != n {
		k.Fatalf("%d events pulled, want %d", pulled, n)
	}
	got := k.read(eventlog.Query{Life: life("a")})
	if len(got) != n {
		k.Fatalf("%d events, want %d", len(got), n)
	}
	for i, e := range got {
		k.same("event", []event.Event{e}, []event.Event{ev(fmt.Sprint("t", i%5), int64(i))})
	}
	if got := k.tail(eventlog.TailQuery{Limit: 700}); len(got) != n {
		k.Fatalf("%d events in the tail, want %d", len(got), n)
	}
}
