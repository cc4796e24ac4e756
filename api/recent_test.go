package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func eventsOf(from, to int64, data string) (events []event.Event) {
	for seq := from; seq < to; seq++ {
		events = append(events, event.Event{Type: "note", Seq: seq, Data: json.RawMessage(data)})
	}
	return events
}

// What is held of the end of a log answers for what follows a seq, up to what is wanted at least, or says that the log has to be read; what it gives is in a row and of that life.
func TestTheEndOfALogAnswersForItself(t *testing.T) {
	var r recent
	check := func(life string, seq, least int64, want string) {
		t.Helper()
		events, ok := r.after(life, seq, least)
		got := ""
		for _, e := range events {
			got += fmt.Sprint(" ", e.seq)
		}
		if !ok {
			got = "read"
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("after %d of %q, %d at least: %q, want %q", seq, life, least, got, want)
		}
	}
	check("a", -1, -1, "read") // nothing is known
	r.add("a", eventsOf(5, 8, "1"))
	check("a", 4, 4, "5 6 7")
	check("a", 4, 7, "5 6 7")
	check("a", 6, 6, "7")
	check("a", 7, 7, "")
	check("a", 9, 9, "")     // it was read already and is about to be published
	check("a", 3, 3, "read") // it stands further back
	check("a", 4, 8, "read") // a value is ahead of what was published
	check("a", 7, 8, "read")
	check("b", 4, 4, "read") // another life
	r.add("a", nil)
	r.add("a", eventsOf(8, 9, "1"))
	check("a", 6, 8, "7 8")
	r.add("a", eventsOf(12, 13, "1")) // a gap
	check("a", 8, 8, "read")
	check("a", 11, 12, "12")
	r.add("b", eventsOf(13, 14, "1"))
	check("a", 12, 12, "read")
	check("b", 12, 13, "13")
}

// However much is published, only so much is held, and always the last; what was handed out stays as it was.
func TestTheEndOfALogIsBounded(t *testing.T) {
	var r recent
	r.add("a", eventsOf(0, 10, "1"))
	early, _ := r.after("a", -1, 0)
	next := int64(10)
	for _, size := range []int{10, 1000, recentBytes / 2, 10, 2 * recentBytes, 10, 5000} {
		for range 300 {
			r.add("a", eventsOf(next, next+3, `"`+strings.Repeat("x", size)+`"`))
			next += 3
			held := 0
			for _, e := range r.events {
				held += e.size
			}
			if held != r.bytes || held > recentBytes && len(r.events) > 1 {
				t.Fatalf("%d events hold %d bytes, counted as %d", len(r.events), held, r.bytes)
			}
			if last, ok := r.after("a", next-2, next-1); !ok || len(last) != 1 {
				t.Fatalf("the last event is not held")
			}
		}
	}
	for i, e := range early {
		if e.seq != int64(i) {
			t.Errorf("event %d of what was handed out is now %d", i, e.seq)
		}
	}
}

// All who send an event or a change send the same bytes.
func TestFramesAreMadeOnce(t *testing.T) {
	var r recent
	r.add("a", eventsOf(0, 1, "1"))
	f := frames{"s", "a"}
	one, _ := r.after("a", -1, 0)
	other, _ := r.after("a", -1, 0)
	if a, b := one[0].frame(f), other[0].frame(f); &a[0] != &b[0] || string(a) != string(f.event(nil, &eventsOf(0, 1, "1")[0], mark{"a", 0})) {
		t.Errorf("%q and %q", a, b)
	}
}
