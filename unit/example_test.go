package unit_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// An instance is sent batches: cells to open, events to fold, states to give back.
func ExampleLocal() {
	l, err := unit.NewLocal(marks())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	done := make(chan unit.Reply)
	l.Submit(context.Background(), unit.Batch{
		Open:    []unit.Open{{Cell: 1, Key: "test/marks", Seq: -1}},
		Cells:   []unit.CellID{1},
		Events:  []event.Event{{Type: "test/mark", Seq: 0, Data: json.RawMessage(`{"marks":["a"]}`)}},
		Through: 3, // the events 1 to 3 were of other types
		States:  []unit.CellID{1},
	}, func(r unit.Reply) { done <- r })
	r := <-done
	for _, v := range r.Values {
		fmt.Printf("value at %d: %s\n", v.Seq, v.View)
	}
	fmt.Printf("state at %d: %s\n", r.States[0].Seq, r.States[0].State)
	// Output:
	// value at -1: {"marks":[]}
	// value at 0: {"marks":["a"]}
	// state at 3: {"marks":["a"]}
}

// A definition is refused for its first wrong field.
func ExampleCompile() {
	_, err := unit.Compile(unit.Definition{Key: "my unit"})
	fmt.Println(err)
	// Output:
	// unit "my unit" refused (key): the key has ' ' at byte 2; only [A-Za-z0-9._/-] are allowed
}
