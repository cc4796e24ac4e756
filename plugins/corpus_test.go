package plugins_test

import (
	"encoding/json"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/corpus"
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

func shipped(t *testing.T) []*unit.Compiled {
	t.Helper()
	var all []*unit.Compiled
	for _, u := range []sdk.Unit{todounit.Projection, titleunit.Projection, usageunit.Projection, limitsunit.New(limitsunit.Default())} {
		def, err := u.Definition()
		if err != nil {
			t.Fatal(err)
		}
		c, err := unit.Compile(def)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

type change struct {
	Key   string
	Seq   int64
	Value string
}

// TestRecordedLogsGiveTheirRecordedValues folds every log with the units that ship: each change, the values at each cut and at the
// end, and the rows are those that the recording program computed.
func TestRecordedLogsGiveTheirRecordedValues(t *testing.T) {
	units := shipped(t)
	for _, log := range corpus.Logs(t) {
		t.Run(log.Name, func(t *testing.T) {
			states := make([]unit.State, len(units))
			views := make([]json.RawMessage, len(units))
			for i, u := range units {
				s, err := u.Inline.Init()
				if err != nil {
					t.Fatal(err)
				}
				states[i], views[i] = s, view(t, u, s)
			}
			value := func(key string) json.RawMessage {
				for i, u := range units {
					if u.Key == key {
						return views[i]
					}
				}
				return nil
			}
			same := func(what string, want map[string]json.RawMessage) {
				t.Helper()
				for key, w := range want {
					if got := value(key); !event.Equal(got, w) {
						t.Errorf("%s: %s = %s, want %s", what, key, got, w)
					}
				}
			}
			cuts := map[int64]map[string]json.RawMessage{}
			for _, cut := range log.Cuts {
				cuts[cut.At] = cut.Values
			}
			var changes []change
			last := int64(-1)
			for n, line := range log.Events {
				d, err := event.DecodeDraft(line, 0)
				if err != nil {
					t.Fatalf("event %d: %v", n, err)
				}
				ev := &d.Event
				last = ev.Seq
				for i, u := range units {
					if !u.Folds(ev.Type) {
						continue
					}
					next, changed, err := u.Inline.Apply(states[i], ev)
					if err != nil {
						t.Fatalf("%s at seq %d: %v", u.Key, ev.Seq, err)
					}
					if !changed {
						continue
					}
					states[i] = next
					v := view(t, u, next)
					if string(v) != string(views[i]) {
						views[i] = v
						changes = append(changes, change{u.Key, ev.Seq, string(v)})
					}
				}
				if want, ok := cuts[ev.Seq]; ok {
					same("cut", want)
				}
			}
			if last != log.AsOfSeq {
				t.Fatalf("the log ends at seq %d, want %d", last, log.AsOfSeq)
			}
			same("end", log.Values)
			if len(changes) != len(log.Changes) {
				t.Fatalf("%d changes, want %d", len(changes), len(log.Changes))
			}
			for i, want := range log.Changes {
				got := changes[i]
				if got.Key != want.Key || got.Seq != want.Seq || !event.Equal(json.RawMessage(got.Value), want.Value) {
					t.Errorf("change %d = %+v, want %s at %d: %s", i, got, want.Key, want.Seq, want.Value)
				}
			}
			for i, u := range units {
				want, ok := log.Rows[u.Key]
				if !ok {
					continue
				}
				state, err := u.Inline.Encode(states[i])
				if err != nil {
					t.Fatal(err)
				}
				if u.StateVersion != want.Ver || !event.Equal(state, want.Val) {
					t.Errorf("row of %s = {ver %d, val %s}, want {ver %d, val %s}", u.Key, u.StateVersion, state, want.Ver, want.Val)
				}
				if err := u.CheckState(state, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTheShippedUnitsKeepTheContractOverRecordedLogs looks for what made-up events may not show.
func TestTheShippedUnitsKeepTheContractOverRecordedLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("folds each log some hundred times")
	}
	units := shipped(t)
	for _, log := range corpus.Logs(t) {
		var events []event.Event
		for n, line := range log.Events {
			d, err := event.DecodeDraft(line, 0)
			if err != nil {
				t.Fatalf("%s: event %d: %v", log.Name, n, err)
			}
			events = append(events, d.Event)
		}
		for _, u := range units {
			if r := plugintest.Check(u.Definition, events); !r.OK() {
				t.Errorf("%s: %s", log.Name, r)
			}
		}
	}
}

func view(t *testing.T, u *unit.Compiled, s unit.State) json.RawMessage {
	t.Helper()
	v, err := u.Inline.View(s)
	if err == nil {
		err = u.CheckView(v, 0)
	}
	if err != nil {
		t.Fatalf("%s: %v", u.Key, err)
	}
	return v
}
