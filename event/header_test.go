package event_test

import (
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func TestEachBadHeaderFieldHasItsOwnError(t *testing.T) {
	const ok = `"type":"session","version":0,"id":"s","createdAt":1`
	for _, c := range []struct{ line, rule, path string }{
		{``, "json-syntax", "$"},
		{`{"type":"session","version":0,"id":"s","createdAt":1,"cwd":"/a","cwd":"/b"}`, "duplicate-key", "$.cwd"},
		{`{` + ok + `,"x":-0}`, "negative-zero", "$.x"},
		{`[]`, "not-an-object", "$"},
		{`"session"`, "not-an-object", "$"},
		{`{}`, "type-invalid", "$.type"},
		{`{"type":"Session","version":0,"id":"s","createdAt":1}`, "type-invalid", "$.type"},
		{`{"Type":"session","version":0,"id":"s","createdAt":1}`, "type-invalid", "$.type"},
		{`{"type":"session","id":"s","createdAt":1}`, "version-invalid", "$.version"},
		{`{"type":"session","version":"0","id":"s","createdAt":1}`, "version-invalid", "$.version"},
		{`{"type":"session","version":1,"id":"s","createdAt":1}`, "version-unsupported", "$.version"},
		{`{"type":"session","version":-1,"id":"s","createdAt":1}`, "version-unsupported", "$.version"},
		{`{"type":"session","version":0,"createdAt":1}`, "id-invalid", "$.id"},
		{`{"type":"session","version":0,"id":1,"createdAt":1}`, "id-invalid", "$.id"},
		{`{"type":"session","version":0,"id":"","createdAt":1}`, "id-invalid", "$.id"},
		{`{"type":"session","version":0,"id":"a/b","createdAt":1}`, "id-invalid", "$.id"},
		{`{"type":"session","version":0,"id":"..","createdAt":1}`, "id-invalid", "$.id"},
		{`{"type":"session","version":0,"id":"s"}`, "created-at-invalid", "$.createdAt"},
		{`{"type":"session","version":0,"id":"s","createdAt":-1}`, "created-at-invalid", "$.createdAt"},
		{`{"type":"session","version":0,"id":"s","createdAt":null}`, "created-at-invalid", "$.createdAt"},
		{`{"type":"session","version":0,"id":"s","createdAt":9007199254740992}`, "created-at-invalid", "$.createdAt"},
		{`{` + ok + `,"cwd":3}`, "cwd-invalid", "$.cwd"},
		{`{` + ok + `,"cwd":null}`, "cwd-invalid", "$.cwd"},
		{`{` + ok + `,"cwd":""}`, "cwd-not-absolute", "$.cwd"},
		{`{` + ok + `,"cwd":"work"}`, "cwd-not-absolute", "$.cwd"},
		{`{` + ok + `,"parentSession":3}`, "parent-session-invalid", "$.parentSession"},
		{`{` + ok + `,"seedLength":0.5}`, "seed-length-invalid", "$.seedLength"},
		{`{` + ok + `,"seedLength":-1}`, "seed-length-invalid", "$.seedLength"},
		{`{` + ok + `,"origin":"user"}`, "origin-invalid", "$.origin"},
		{`{` + ok + `,"origin":""}`, "origin-invalid", "$.origin"},
		{`{` + ok + `,"origin":null}`, "origin-invalid", "$.origin"},
		{`{` + ok + `,"delegationDepth":0.5}`, "delegation-depth-invalid", "$.delegationDepth"},
		{`{` + ok + `,"delegationDepth":-1}`, "delegation-depth-invalid", "$.delegationDepth"},
		{`{` + ok + `,"agentPreset":1}`, "agent-preset-invalid", "$.agentPreset"},
	} {
		_, err := event.DecodeHeader([]byte(c.line))
		if e := refusal(t, err); e.Code != event.HeaderInvalid || e.Rule != c.rule || e.Path != c.path {
			t.Errorf("%s: got %s (%s) at %s, want %s at %s", c.line, e.Code, e.Rule, e.Path, c.rule, c.path)
		}
	}
}

func TestIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "A-Z.a_z-0.9": true, "...a": true, "-": true, strings.Repeat("x", 128): true,
		"": false, ".": false, "..": false, strings.Repeat(".", 128): false, strings.Repeat("x", 129): false,
		"a b": false, "a/b": false, `a\b`: false, "é": false, "a\x00": false, "a\n": false, "~": false, "a:b": false,
	} {
		if err := event.CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestAbsolutePaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"/": true, "/work": true, "//x": true, `C:\`: true, `C:\x`: true, "c:/x": true, `z:\`: true, `\\server\share`: true, `\\server\share\x y`: true, `\\server/share`: true,
		"work": false, "./x": false, "~": false, "C:": false, "C:x": false, `1:\x`: false, `\x`: false, `\\`: false, `\\server`: false, `\\server\`: false, `\\server\\share`: false, `\\\share`: false, `[:\`: false, " /x": false, "ab/x": false,
	} {
		h := event.Header{ID: "s", CWD: path}
		err := h.Check()
		if (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
		if !ok {
			if e := refusal(t, err); e.Rule != "cwd-not-absolute" {
				t.Errorf("%q: %v", path, e)
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestHeadersMadeHereAreChecked(t *testing.T) {
	for rule, h := range map[string]event.Header{
		"version-unsupported":      {ID: "s", Version: 1},
		"id-invalid":               {},
		"created-at-invalid":       {ID: "s", CreatedAt: event.MaxInteger + 1},
		"cwd-invalid":              {ID: "s", CWD: "/\xff"},
		"parent-session-invalid":   {ID: "s", ParentSession: "\xff"},
		"seed-length-invalid":      {ID: "s", SeedLength: ptr(int64(-1))},
		"origin-invalid":           {ID: "s", Origin: "user"},
		"delegation-depth-invalid": {ID: "s", DelegationDepth: ptr(int64(-1))},
		"agent-preset-invalid":     {ID: "s", AgentPreset: ptr("\xff")},
	} {
		if e := refusal(t, h.Check()); e.Code != event.HeaderInvalid || e.Rule != rule {
			t.Errorf("%s: got %v", rule, e)
		}
	}
}

func TestHeadersMayHoldTheLargestInteger(t *testing.T) {
	h := event.Header{ID: "s", CreatedAt: event.MaxInteger, SeedLength: ptr(int64(event.MaxInteger)), DelegationDepth: ptr(int64(event.MaxInteger))}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

func TestAHeaderMadeHereGoesOutInOrder(t *testing.T) {
	h := event.Header{ID: "s", CreatedAt: 5}
	if got, want := string(h.AppendJSON(nil)), `{"type":"session","version":0,"id":"s","createdAt":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h = event.Header{ID: "s", CreatedAt: 5, CWD: `C:\<x>`, ParentSession: "p", SeedLength: ptr(int64(0)), Origin: "subagent", DelegationDepth: ptr(int64(0)), AgentPreset: ptr("")}
	const fields = `"version":0,"id":"s","createdAt":5,"cwd":"C:\\<x>","parentSession":"p","seedLength":0,"origin":"subagent","delegationDepth":0,"agentPreset":""}`
	if got := string(h.AppendJSON(nil)); got != `{"type":"session",`+fields {
		t.Errorf("got %s", got)
	}
	if got := string(h.AppendFields([]byte(">"))); got != `>{`+fields {
		t.Errorf("got %s", got)
	}
	again, err := event.DecodeHeader(h.AppendJSON(nil))
	if err != nil || string(again.AppendFields(nil)) != `{`+fields {
		t.Errorf("came back as %s, %v", again.AppendFields(nil), err)
	}
}

func TestAHeaderThatWasReadGoesOutAsItCame(t *testing.T) {
	const line = `{"x":{"b":1.0,"a":"<"},"createdAt":1.0e1,"id":"\u0073","type":"session","version":0.0,"parentSession":"","yet another":null,"seedLength":1e0,"delegationDepth":2.0,"agentPreset":"\u0070"}`
	h, err := event.DecodeHeader([]byte(" " + line + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if h.ID != "s" || h.CreatedAt != 10 {
		t.Errorf("got %+v", h)
	}
	if got := string(h.AppendJSON(nil)); got != line {
		t.Errorf("got %s", got)
	}
	copied := h
	copied.CWD = "/new"
	const changed = `{"type":"session","version":0,"id":"s","createdAt":10,"cwd":"/new","seedLength":1,"delegationDepth":2,"agentPreset":"p","x":{"b":1.0,"a":"<"},"yet another":null}`
	if got := string(copied.AppendJSON(nil)); got != changed {
		t.Errorf("after a change got %s", got)
	}
	if got := string(h.AppendJSON(nil)); got != line {
		t.Errorf("the original became %s", got)
	}
}

func TestAHeaderOfAnotherVersionSaysSo(t *testing.T) {
	h, err := event.DecodeHeader([]byte(`{"type":"session","version":0,"id":"s","createdAt":1}`))
	if err != nil {
		t.Fatal(err)
	}
	h.Version = 1
	if got := string(h.AppendJSON(nil)); got != `{"type":"session","version":1,"id":"s","createdAt":1}` {
		t.Errorf("got %s", got)
	}
}

func TestEveryChangeOfAReadHeaderGoesOut(t *testing.T) {
	const line = `{"type":"session","version":0,"id":"s","createdAt":1,"cwd":"/a","parentSession":"p","seedLength":1,"origin":"subagent","delegationDepth":1,"agentPreset":"x","own":1}`
	bare, err := event.DecodeHeader([]byte(`{"type":"session","version":0,"id":"s","createdAt":1,"own":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*event.Header){
		"id":                     func(h *event.Header) { h.ID = "t" },
		"createdAt":              func(h *event.Header) { h.CreatedAt = 2 },
		"cwd":                    func(h *event.Header) { h.CWD = "" },
		"parentSession":          func(h *event.Header) { h.ParentSession = "q" },
		"seedLength":             func(h *event.Header) { h.SeedLength = nil },
		"seedLength value":       func(h *event.Header) { h.SeedLength = ptr(int64(2)) },
		"origin":                 func(h *event.Header) { h.Origin = "" },
		"delegationDepth":        func(h *event.Header) { h.DelegationDepth = ptr(int64(0)) },
		"agentPreset":            func(h *event.Header) { h.AgentPreset = nil },
		"agentPreset's text":     func(h *event.Header) { *h.AgentPreset = "y" },
		"seedLength, added":      func(h *event.Header) { *h = bare; h.SeedLength = ptr(int64(0)) },
		"delegationDepth, added": func(h *event.Header) { *h = bare; h.DelegationDepth = ptr(int64(0)) },
		"agentPreset, added":     func(h *event.Header) { *h = bare; h.AgentPreset = ptr("") },
	} {
		h, err := event.DecodeHeader([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		change(&h)
		again, err := event.DecodeHeader(h.AppendJSON(nil))
		if err != nil || string(again.AppendFields(nil)) != string(h.AppendFields(nil)) {
			t.Errorf("%s: got %s, %v", name, h.AppendJSON(nil), err)
		}
		if string(event.Lookup(h.AppendJSON(nil), "own")) != "1" {
			t.Errorf("%s: the unknown field is lost: %s", name, h.AppendJSON(nil))
		}
	}
}
