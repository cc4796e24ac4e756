package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func TestTheEnvelopeHoldsExactlyItsKeys(t *testing.T) {
	const ok = `"type":"x","seq":0,"time":0,"data":{}`
	for _, c := range []struct{ line, rule, path string }{
		{`"x"`, "not-an-object", "$"},
		{`[]`, "not-an-object", "$"},
		{`null`, "not-an-object", "$"},
		{`{}`, "type-missing", "$.type"},
		{`{"seq":0,"time":0,"data":{}}`, "type-missing", "$.type"},
		{`{"type":"x","time":0,"data":{}}`, "seq-missing", "$.seq"},
		{`{"type":"x","seq":0,"data":{}}`, "time-missing", "$.time"},
		{`{"type":"x","seq":0,"time":0}`, "data-missing", "$.data"},
		{`{` + ok + `,"extra":null}`, "unknown-key", "$.extra"},
		{`{` + ok + `,"Type":"x"}`, "unknown-key", "$.Type"},
		{`{"TYPE":"x","seq":0,"time":0,"data":{}}`, "unknown-key", "$.TYPE"},
		{`{` + ok + `,"":1}`, "unknown-key", `$[""]`},
		{`{"type":null,"seq":0,"time":0,"data":{}}`, "type-invalid", "$.type"},
		{`{"type":1,"seq":0,"time":0,"data":{}}`, "type-invalid", "$.type"},
		{`{"type":"x","seq":"0","time":0,"data":{}}`, "seq-invalid", "$.seq"},
		{`{"type":"x","seq":-1,"time":0,"data":{}}`, "seq-invalid", "$.seq"},
		{`{"type":"x","seq":0.5,"time":0,"data":{}}`, "seq-invalid", "$.seq"},
		{`{"type":"x","seq":null,"time":0,"data":{}}`, "seq-invalid", "$.seq"},
		{`{"type":"x","seq":9007199254740992,"time":0,"data":{}}`, "seq-invalid", "$.seq"},
		{`{"type":"x","seq":0,"time":1.5,"data":{}}`, "time-invalid", "$.time"},
		{`{"type":"x","seq":0,"time":9007199254740992,"data":{}}`, "time-invalid", "$.time"},
		{`{"type":"x","seq":0,"time":-9007199254740992,"data":{}}`, "time-invalid", "$.time"},
		{`{"type":"x","seq":0,"time":"0","data":{}}`, "time-invalid", "$.time"},
		{`{` + ok + `,"ignorable":false}`, "ignorable-invalid", "$.ignorable"},
		{`{` + ok + `,"ignorable":1}`, "ignorable-invalid", "$.ignorable"},
		{`{` + ok + `,"ignorable":null}`, "ignorable-invalid", "$.ignorable"},
	} {
		_, err := event.DecodeDraft([]byte(c.line), 0)
		if e := refusal(t, err); e.Code != event.EnvelopeInvalid || e.Rule != c.rule || e.Path != c.path {
			t.Errorf("%s: got %s (%s) at %s, want %s at %s", c.line, e.Code, e.Rule, e.Path, c.rule, c.path)
		}
	}
}

func TestTheWholeLineIsLosslessBeforeTheEnvelopeIsLookedAt(t *testing.T) {
	for line, path := range map[string]string{
		`{"type":1,"seq":"x","data":{"a":[0,-0]}}`: "$.data.a[1]",
		`{"unknown":1e400}`:                        "$.unknown",
		`{"type":"x","type":"y"}`:                  "$.type",
		`{"type":"x","seq":-0,"time":0,"data":1}`:  "$.seq",
		`[1,`: "$[1]",
		`{"type":"x","seq":0,"time":0,"data":{}} {}`:     "$",
		`{"type":"x","seq":0,"time":0,"data":"` + "\xff": "$.data",
	} {
		_, err := event.DecodeDraft([]byte(line), 0)
		if e := refusal(t, err); e.Code != event.DataNotLossless || e.Path != path {
			t.Errorf("%s: got %s at %s", line, e.Code, e.Path)
		}
	}
}

func TestEnvelopeValues(t *testing.T) {
	for _, c := range []struct {
		line string
		want event.Event
	}{
		{`{"type":"","seq":0,"time":0,"data":null}`, event.Event{Data: json.RawMessage("null")}},
		{`{"data":"x","time":-5,"seq":9007199254740991,"type":"a/b"}`, event.Event{Type: "a/b", Seq: event.MaxInteger, Time: -5, Data: json.RawMessage(`"x"`)}},
		{`{"type":"x","seq":1.0,"time":1e0,"data":[ 1 ]}`, event.Event{Type: "x", Seq: 1, Time: 1, Data: json.RawMessage(`[1]`)}},
		{`{"ty\u0070e":"\u0075ser/message","seq":120e-1,"time":-0.9e1,"data":0}`, event.Event{Type: event.UserMessage, Seq: 12, Time: -9, Data: json.RawMessage(`0`)}},
		{` { "type" : "x" , "seq" : 0 , "time" : 0 , "data" : { "a b" : [ ] } , "ignorable" : true } `, event.Event{Type: "x", Data: json.RawMessage(`{"a b":[]}`), Ignorable: true}},
		{`{"type":"x","seq":0,"time":0,"data":0,"surfaceOp":"append"}`, event.Event{Type: "x", Data: json.RawMessage(`0`), Op: event.Append()}},
		{`{"type":"x","seq":0,"time":0,"data":0,"surfaceOp":"\u0061ppend","sourceEventSeqs":[]}`, event.Event{Type: "x", Data: json.RawMessage(`0`), Op: event.Append(), Sources: []int64{}}},
		{`{"type":"x","seq":0,"time":0,"data":0,"surfaceOp":{"end":2.0,"op":"replace","start":1},"sourceEventSeqs":[3,1e0,3]}`, event.Event{Type: "x", Data: json.RawMessage(`0`), Op: event.Replace(1, 2), Sources: []int64{3, 1, 3}}},
		{`{"type":"x","seq":0,"time":0,"data":0,"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}`, event.Event{Type: "x", Data: json.RawMessage(`0`), Op: event.Replace(0, 0), Sources: []int64{0}}},
	} {
		d, err := event.DecodeDraft([]byte(c.line), 0)
		if err != nil || d.OpFault != "" || d.SourcesFault != "" {
			t.Errorf("%s: %v, %q, %q", c.line, err, d.OpFault, d.SourcesFault)
			continue
		}
		if !reflect.DeepEqual(d.Event, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.line, d.Event, c.want)
		}
	}
}

func TestFaultsOfSurfaceFieldsAreKeptForTheRulesBeforeThem(t *testing.T) {
	for _, op := range []string{`null`, `1`, `true`, `""`, `"Append"`, `"replace"`, `[]`, `["append"]`, `{}`, `{"op":"replace"}`,
		`{"op":"replace","start":0}`, `{"op":"replace","end":0}`, `{"start":0,"end":0}`, `{"op":"append","start":0,"end":0}`, `{"op":"replace","start":0,"end":0,"x":null}`,
		`{"op":"replace","start":-1,"end":0}`, `{"op":"replace","start":0,"end":-1}`, `{"op":"replace","start":0,"end":0.5}`, `{"op":"replace","start":"0","end":0}`,
		`{"op":"replace","start":0,"end":null}`, `{"op":"replace","start":0,"end":9007199254740992}`, `{"Op":"replace","start":0,"end":0}`,
		`{"op":"replace","start":0,"stop":1}`, `{"op":"replace","start":0,"end":0,"stop":1}`} {
		d, err := event.DecodeDraft([]byte(`{"type":"x","seq":0,"time":0,"data":0,"surfaceOp":`+op+`}`), 0)
		if err != nil || d.OpFault == "" || !d.HasOp() || d.Op != (event.Op{}) || d.HasSources() {
			t.Errorf("%s: %v, fault %q, op %v", op, err, d.OpFault, d.Op)
		}
	}
	for _, sources := range []string{`null`, `1`, `"invalid"`, `{}`, `["0"]`, `[-1]`, `[0.5]`, `[null]`, `[[0]]`, `[0,9007199254740992]`} {
		d, err := event.DecodeDraft([]byte(`{"type":"x","seq":0,"time":0,"data":0,"sourceEventSeqs":`+sources+`}`), 0)
		if err != nil || d.SourcesFault == "" || !d.HasSources() || d.Sources != nil || d.HasOp() {
			t.Errorf("%s: %v, fault %q, sources %v", sources, err, d.SourcesFault, d.Sources)
		}
	}
}

func TestCoreTypesComeInAsTheyAre(t *testing.T) {
	for _, typ := range []string{event.TurnStart, event.TurnEnd, event.StepStart, event.StepEnd, event.UserMessage, event.AssistantMessage,
		event.AssistantChunk, event.ToolCall, event.ToolResult, event.RequestHeader, event.RequestContext, event.EndSeed} {
		d, err := event.DecodeDraft([]byte(`{"type":"`+typ+`","seq":0,"time":0,"data":0}`), 0)
		if err != nil || d.Type != typ {
			t.Errorf("%s came in as %q, %v", typ, d.Type, err)
		}
		if want := typ == event.UserMessage || typ == event.AssistantMessage || typ == event.ToolResult; event.Eligible(typ) != want {
			t.Errorf("%s can be on the surface: %v", typ, !want)
		}
	}
}

func TestWhetherSurfaceFieldsArePresent(t *testing.T) {
	for _, c := range []struct {
		d           event.Draft
		op, sources bool
	}{
		{event.Draft{}, false, false},
		{event.Draft{Event: event.Event{Op: event.Append()}}, true, false},
		{event.Draft{Event: event.Event{Sources: []int64{}}}, false, true},
		{event.Draft{OpFault: "x"}, true, false},
		{event.Draft{SourcesFault: "x"}, false, true},
	} {
		if c.d.HasOp() != c.op || c.d.HasSources() != c.sources {
			t.Errorf("%+v: op %v, sources %v", c.d, c.d.HasOp(), c.d.HasSources())
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	at := &event.Error{Code: event.MessageInvalid, Path: "$.data.id", Reason: "it needs one"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{at, "message-invalid at $.data.id: it needs one"},
		{&event.Error{Code: event.TooLarge, Reason: "too large"}, "too-large: too large"},
		{&event.IndexError{Index: 0, Err: at}, "event 0: message-invalid at $.data.id: it needs one"},
		{&event.IndexError{Index: event.HeaderIndex, Err: at}, "header: message-invalid at $.data.id: it needs one"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if e := refusal(t, &event.IndexError{Err: at}); e != at {
		t.Errorf("got %v", e)
	}
}

func TestEventsGoOutInAFixedOrderAndComeBackTheSame(t *testing.T) {
	for want, e := range map[string]event.Event{
		`{"type":"x","seq":0,"time":-1,"data":null}`: {Type: "x", Time: -1, Data: json.RawMessage("null")},
		`{"type":"a\"\u0001é","seq":9007199254740991,"time":-9007199254740991,"data":"<&>","surfaceOp":"append","sourceEventSeqs":[],"ignorable":true}`: {Type: "a\"\x01é", Seq: event.MaxInteger, Time: -event.MaxInteger, Data: json.RawMessage(`"<&>"`), Op: event.Append(), Sources: []int64{}, Ignorable: true},
		`{"type":"","seq":10,"time":1000,"data":{"n":1.50},"surfaceOp":{"op":"replace","start":9,"end":10},"sourceEventSeqs":[9,10,100]}`:               {Seq: 10, Time: 1000, Data: json.RawMessage(`{"n":1.50}`), Op: event.Replace(9, 10), Sources: []int64{9, 10, 100}},
		`{"type":"\"","seq":0,"time":0,"data":0}`:               {Type: `"`, Data: json.RawMessage("0")},
		`{"type":"\\","seq":0,"time":0,"data":0}`:               {Type: `\`, Data: json.RawMessage("0")},
		`{"type":"\u001f","seq":0,"time":0,"data":0}`:           {Type: "\x1f", Data: json.RawMessage("0")},
		"{\"type\":\"\u0080\",\"seq\":0,\"time\":0,\"data\":0}": {Type: "\u0080", Data: json.RawMessage("0")},
	} {
		got := e.AppendJSON([]byte("> "))
		if string(got) != "> "+want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := e.EncodedSize(); n != len(want) {
			t.Errorf("%s: size %d, want %d", want, n, len(want))
		}
		d, err := event.DecodeDraft([]byte(want), 0)
		if err != nil || !reflect.DeepEqual(d.Event, e) {
			t.Errorf("%s: came back as %+v, %v", want, d.Event, err)
		}
	}
}

func TestAnEventAboveTheLimitIsRefusedWithBothSizes(t *testing.T) {
	e := event.Event{Type: "x", Data: json.RawMessage(`"` + strings.Repeat("a", 1000) + `"`)}
	line := e.AppendJSON(nil)
	size := len(line)
	spaced := slices.Concat(bytes.Repeat([]byte{' '}, 200), line)
	for _, c := range []struct {
		name  string
		line  []byte
		limit int
		ok    bool
	}{
		{"just fits", line, size, true},
		{"one byte more", line, size - 1, false},
		{"white space does not count", spaced, size, true},
		{"white space does not help", spaced, size - 1, false},
		{"far above is not read", bytes.Repeat([]byte{'['}, 5*size), size, false},
		{"the default", line, 0, true},
		{"above the default", slices.Concat([]byte(`{"type":"x","seq":0,"time":0,"data":"`), bytes.Repeat([]byte{'a'}, event.DefaultMaxBytes), []byte(`"}`)), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := event.DecodeDraft(c.line, c.limit)
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e := refusal(t, err)
			limit := c.limit
			if limit == 0 {
				limit = event.DefaultMaxBytes
			}
			if e.Code != event.TooLarge || e.Rule != "event-size" || e.Limit != limit || e.Size <= limit || !strings.Contains(e.Reason, fmt.Sprint(limit)) {
				t.Errorf("got %v", e)
			}
		})
	}
	if err := event.CheckSize(&e, size); err != nil {
		t.Error(err)
	}
	if got := refusal(t, event.CheckSize(&e, size-1)); got.Code != event.TooLarge || !strings.Contains(got.Reason, fmt.Sprint(size)) || !strings.Contains(got.Reason, fmt.Sprint(size-1)) {
		t.Errorf("got %v", got)
	}
}

func TestDataMayNestAsDeepInAnEventAsAlone(t *testing.T) {
	line := func(levels int) []byte {
		return []byte(`{"type":"x","seq":0,"time":0,"data":` + nested(levels) + `}`)
	}
	if _, err := event.DecodeDraft(line(event.MaxDepth), 0); err != nil {
		t.Error(err)
	}
	_, err := event.DecodeDraft(line(event.MaxDepth+1), 0)
	if e := refusal(t, err); e.Code != event.DataNotLossless || e.Rule != "depth" {
		t.Errorf("got %v", e)
	}
}

func TestADraftSharesNothingWithItsLine(t *testing.T) {
	line := []byte(`{"type":"own/type","seq":0,"time":0,"data":{"a":"b"},"sourceEventSeqs":[0]}`)
	d, err := event.DecodeDraft(line, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = '!'
	}
	if d.Type != "own/type" || string(d.Data) != `{"a":"b"}` {
		t.Errorf("got %q, %s", d.Type, d.Data)
	}
}

func TestEncodingJSONIsKeptAwayFromEvents(t *testing.T) {
	e := event.Event{Type: "x", Data: json.RawMessage(`"<"`)}
	for _, v := range []any{e, &e, []event.Event{e}, event.Draft{Event: e}, event.Header{ID: "s"}, &event.Header{ID: "s"}} {
		if out, err := json.Marshal(v); err == nil {
			t.Errorf("%T was marshalled: %s", v, out)
		}
	}
	if json.Unmarshal([]byte(`{"TYPE":"x"}`), &e) == nil || json.Unmarshal([]byte(`{}`), &event.Header{}) == nil {
		t.Error("encoding/json read an event or a header")
	}
}

func TestFingerprintsFollowTheContent(t *testing.T) {
	base := event.Event{Type: "x", Seq: 1, Time: 2, Data: json.RawMessage(`{"a":1}`)}
	// Rows on disk hold fingerprints: this value must never change.
	if got := event.Fingerprint(&base); got != "8e2383acb373b738ff48bed5a9bdee50" {
		t.Errorf("got %s", got)
	}
	seen := map[string]bool{event.Fingerprint(&base): true}
	for _, change := range []func(*event.Event){
		func(e *event.Event) { e.Type = "y" },
		func(e *event.Event) { e.Seq++ },
		func(e *event.Event) { e.Time++ },
		func(e *event.Event) { e.Data = json.RawMessage(`{"a":1.0}`) },
		func(e *event.Event) { e.Op = event.Append() },
		func(e *event.Event) { e.Op = event.Replace(0, 0) },
		func(e *event.Event) { e.Sources = []int64{} },
		func(e *event.Event) { e.Sources = []int64{0} },
		func(e *event.Event) { e.Ignorable = true },
	} {
		e := base
		change(&e)
		f := event.Fingerprint(&e)
		if seen[f] {
			t.Errorf("%+v has the fingerprint of another", e)
		}
		seen[f] = true
	}
}

func TestTypesFromGoMustBeText(t *testing.T) {
	for typ, ok := range map[string]bool{"": true, "a/b": true, "é上": true, "\xff": false, "a\xc0\xaf": false, "\xed\xa0\x80": true, "x\xed\xb0\x80y\xed\xa0\x80": true, "\xed\xa0": false, "\xed\xa0A": false, "\xed\xc0\x80": false, "\xed\xbf\xbf": true} {
		err := event.CheckType(typ)
		if (err == nil) != ok {
			t.Errorf("%q: %v", typ, err)
		}
		if ok {
			if s, _ := event.String(event.AppendString(nil, typ)); s != typ {
				t.Errorf("%q came back as %q", typ, s)
			}
		} else if e := refusal(t, err); e.Code != event.EnvelopeInvalid {
			t.Errorf("%q: %v", typ, e)
		}
	}
}
