package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
)

// What strangers can write into a session, a value, a problem or a file name steers no terminal, whichever of these prints it.
func TestSessionsAreHarmless(t *testing.T) {
	const evil = "\x1b]0;owned\x07\u202e\u009b31m\r\n"
	value := json.RawMessage(event.AppendString(nil, evil))
	block := &client.Block{Values: map[string]json.RawMessage{evil: value, "list": json.RawMessage(`[{"a":` + string(value) + `}]`)},
		Unavailable: map[string]client.Unavailable{evil + "2": {Code: evil, Seq: 3, Message: evil}}}
	session := &client.Session{Header: event.Header{ID: evil, CWD: evil, ParentSession: evil}, Projections: block}
	var out bytes.Buffer
	for _, style := range []Style{{}, {Width: 60}} {
		list := NewSessions(&out, style, nil)
		list.Add(session)
		tail := NewTail(&out, style)
		for _, err := range []error{
			list.End(),
			Session(&out, style, session, block, &client.Surface{Nodes: []int64{1}}),
			Values(&out, style, block),
			tail.Baseline(block),
			tail.Event(&event.Event{Type: evil, Data: value}),
			tail.Value(evil, value, 3),
			tail.Unavailable(evil, client.Unavailable{Code: evil, Message: evil}),
			tail.Note(evil),
			Verification(&out, evil, &client.Verification{Keys: []string{evil}, Differences: []client.Difference{{Key: evil, What: evil, Served: value}},
				Unavailable: map[string]client.Unavailable{evil: {Code: evil, Message: evil}}}),
			StoreStats(&out, &client.StoreStats{StoreID: evil, Path: evil, Durability: evil}),
			CheckReport(&out, &client.CheckReport{Problems: []client.StoreProblem{{Code: evil, Session: evil, Seq: new(int64(4)), Detail: evil}}, More: 2}),
			SavedFile(&out, &SalvagedFile{Path: evil, Session: evil, HeaderLost: true}),
			Salvaged(&out, evil, 1, 2, 3, []client.StoreProblem{{Code: evil, Detail: evil}}, 0),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\u202e\u009b\r") {
		t.Errorf("it prints %q", out.String())
	}
	if !strings.Contains(out.String(), "owned") {
		t.Error("it does not show what is there at all")
	}
}

// What was not compared is not among what is right.
func TestVerificationSaysWhatWasCompared(t *testing.T) {
	faulted := map[string]client.Unavailable{"goal": {Code: "faulted", Message: "failed at seq 3"}}
	for want, v := range map[string]client.Verification{
		"session s: its 2 values are what the log gives: goal, title\n":                                          {Keys: []string{"goal", "title"}},
		"session s: its value is what the log gives: title\n  goal was not compared: faulted: failed at seq 3\n": {Keys: []string{"goal", "title"}, Unavailable: faulted},
		"session s: nothing could be compared\n  goal was not compared: faulted: failed at seq 3\n":              {Keys: []string{"goal"}, Unavailable: faulted},
	} {
		var out strings.Builder
		if err := Verification(&out, "s", &v); err != nil || out.String() != want {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}

// Each figure of a store stands in a column of its own.
func TestStoreStats(t *testing.T) {
	var out strings.Builder
	if err := StoreStats(&out, &client.StoreStats{StoreID: "S", Boot: 3, Path: "/d/foldhost.db", Durability: "full", Logs: 1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"store       S, start 3\n", "file        /d/foldhost.db\n", "holds       1 session, 0 events\n", "since start "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no line %q in\n%s", want, out.String())
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 1 << 40: "1.0 TiB", 1 << 62: "4.0 EiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// A list fits the width, and has a column for each key.
func TestSessionsAreListed(t *testing.T) {
	var out bytes.Buffer
	list := NewSessions(&out, Style{Width: 70}, []string{"title", "none"})
	list.Add(&client.Session{Header: event.Header{ID: "a"}, Seq: 3, Live: true, Projections: &client.Block{Values: map[string]json.RawMessage{"title": json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)}}})
	list.Add(&client.Session{Header: event.Header{ID: "b"}, UpdatedAt: 1000})
	if err := list.End(); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimLeft(`
SESSION  EVENTS  LAST COMMIT, UTC     LIVE  title                 none
a        3       1970-01-01 00:00:00  live  xxxxxxxxxxxxxxxxxxx…  -
b        0       1970-01-01 00:00:01  -     -                     -
`, "\n")
	if out.String() != want {
		t.Errorf("it prints\n%s", out.String())
	}
	out.Reset()
	if err := NewSessions(&out, Style{}, nil).End(); err != nil || out.String() != "there are no sessions\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}
