package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// turns counts the turns of a session.
type turns struct{}

func (turns) Init() (unit.State, error) { return 0, nil }

func (turns) Apply(s unit.State, _ *event.Event) (unit.State, bool, error) {
	return s.(int) + 1, true, nil
}

func (t turns) View(s unit.State) (json.RawMessage, error) { return t.Encode(s) }

func (turns) Encode(s unit.State) (json.RawMessage, error) {
	return json.RawMessage(strconv.Itoa(s.(int))), nil
}

func (turns) Decode(raw json.RawMessage) (unit.State, error) { return strconv.Atoi(string(raw)) }

// definition is turns as it is registered.
func definition() unit.Definition {
	number := json.RawMessage(`{"type":"integer","minimum":0}`)
	return unit.Definition{Key: "turns", StateVersion: 1, StateSchema: number, ViewSchema: number, Events: []string{"turn/start"}, Inline: turns{}}
}

// memory is a log of one session.
type memory struct{ events []event.Event }

func (m *memory) ID() string          { return "s1" }
func (m *memory) Incarnation() string { return "first life" }

func (m *memory) ReadPage(_ context.Context, from, to int64, types []string) (events []event.Event, next int64, err error) {
	for _, ev := range m.events {
		if ev.Seq >= from && ev.Seq < to && (types == nil || slices.Contains(types, ev.Type)) {
			events = append(events, ev)
		}
	}
	return events, to, nil
}

func (m *memory) append(typ string) []event.Event {
	m.events = append(m.events, event.Event{Type: typ, Seq: int64(len(m.events)), Data: json.RawMessage(`{}`)})
	return m.events[len(m.events)-1:]
}

// A unit is registered, a session is attached, its events are published as they are committed, and a snapshot is one cut of all values.
func Example() {
	r := registry.New(registry.Options{Epoch: "store.1"})
	defer r.Close()
	turns, err := r.Register(registry.Registrant{Plugin: "demo"}, definition())
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	log := &memory{}
	s := r.Attach(log, "", -1, registry.Rows{})
	for _, typ := range []string{"turn/start", "turn/end", "turn/start"} {
		s.Publish(ctx, log.append(typ))
	}
	block, err := s.Snapshot(ctx)
	fmt.Println(block.AsOfSeq, string(block.Values["turns"]), err)

	turns.Release() // the last reference: the key is gone
	block, err = s.Snapshot(ctx)
	fmt.Println(block.AsOfSeq, len(block.Values), err)
	// Output:
	// 2 2 <nil>
	// 2 0 <nil>
}

// Changes gives every change that the events of a log caused, for replays.
func ExampleSession_Changes() {
	r := registry.New(registry.Options{})
	defer r.Close()
	if _, err := r.Register(registry.Registrant{Plugin: "demo"}, definition()); err != nil {
		fmt.Println(err)
		return
	}
	log := &memory{}
	for _, typ := range []string{"turn/start", "turn/end", "turn/start"} {
		log.append(typ)
	}
	s := r.Attach(log, "", 2, registry.Rows{})
	for c, err := range s.Changes(context.Background(), 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s = %s at %d\n", c.Key, c.Value, c.Seq)
	}
	// Output:
	// turns = 1 at 0
	// turns = 2 at 2
}

// A cold session is restored from its rows and the end of its log, read from RestoreFloor on.
func ExampleRegistry_Restore() {
	r := registry.New(registry.Options{})
	defer r.Close()
	if _, err := r.Register(registry.Registrant{Plugin: "demo"}, definition()); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	log := &memory{}
	s := r.Attach(log, "", -1, registry.Rows{})
	s.Publish(ctx, log.append("turn/start"))
	s.Publish(ctx, log.append("turn/end"))
	rows, err := s.Checkpoint(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Detach(false)
	log.append("turn/start")

	floor, _ := r.RestoreFloor("", rows)
	tail := registry.Tail{Session: log.ID(), Incarnation: log.Incarnation(), Base: floor, Events: log.events[floor:]}
	block, fresh, err := r.Restore(ctx, "", rows, tail)
	fmt.Println("read from", floor, "as of", block.AsOfSeq, string(block.Values["turns"]), "row at", fresh.Rows["turns"].Seq, err)
	// Output:
	// read from 1 as of 2 2 row at 2 <nil>
}
