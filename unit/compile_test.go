package unit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// marks is the unit of the cases: the last list that test/mark gave, [] before the first.
func marks() unit.Definition {
	return unit.Definition{
		Key: "test/marks", StateVersion: 1,
		StateSchema: json.RawMessage(`{"anyOf":[{"type":"object","properties":{"marks":{"type":"array","items":{"type":"string"}}},"required":["marks"]},{"type":"null"}]}`),
		ViewSchema:  json.RawMessage(`{"type":"object","properties":{"marks":{"type":"array","items":{"type":"string"}}},"required":["marks"],"additionalProperties":false}`),
		Events:      []string{"test/mark"},
		Inline:      rawFold{init: "null", on: func(_ string, ev *event.Event) string { return string(ev.Data) }, view: marksView},
	}
}

func marksView(state string) string {
	if state == "null" {
		return `{"marks":[]}`
	}
	return state
}

// count is the host-only unit of the cases: the number of events.
func count() unit.Definition {
	return unit.Definition{
		Key: "test/count", StateVersion: 1,
		StateSchema: json.RawMessage(`{"type":"integer"}`),
		Inline: rawFold{init: "0", on: func(s string, _ *event.Event) string {
			var n int
			if err := json.Unmarshal([]byte(s), &n); err != nil {
				panic(err)
			}
			out, _ := json.Marshal(n + 1)
			return string(out)
		}},
	}
}

// rawFold is a fold whose state is its own JSON.
type rawFold struct {
	init string
	on   func(state string, ev *event.Event) string
	view func(state string) string
}

func (f rawFold) Init() (unit.State, error) { return f.init, nil }
func (f rawFold) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	next := f.on(s.(string), ev)
	return next, next != s.(string), nil
}
func (f rawFold) View(s unit.State) (json.RawMessage, error) {
	return json.RawMessage(f.view(s.(string))), nil
}
func (f rawFold) Encode(s unit.State) (json.RawMessage, error) {
	return json.RawMessage(s.(string)), nil
}
func (f rawFold) Decode(raw json.RawMessage) (unit.State, error) { return string(raw), nil }

func TestAWrongDefinitionIsRefusedForItsOwnReason(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(d *unit.Definition)
		rule string
	}{
		{"no key", func(d *unit.Definition) { d.Key = "" }, "key"},
		{"a key of 65 characters", func(d *unit.Definition) { d.Key = strings.Repeat("k", 65) }, "key"},
		{"a key with a space", func(d *unit.Definition) { d.Key = "my unit" }, "key"},
		{"a key with a colon", func(d *unit.Definition) { d.Key = "a:b" }, "key"},
		{"a key with a bracket", func(d *unit.Definition) { d.Key = "a[b" }, "key"},
		{"a key with a brace", func(d *unit.Definition) { d.Key = "a{b" }, "key"},
		{"a key that is not ASCII", func(d *unit.Definition) { d.Key = "schlüssel" }, "key"},
		{"a key that is not UTF-8", func(d *unit.Definition) { d.Key = "a\xff" }, "key"},
		{"a negative version", func(d *unit.Definition) { d.StateVersion = -1 }, "state-version"},
		{"a version that no double carries", func(d *unit.Definition) { d.StateVersion = 1 << 53 }, "state-version"},
		{"no state schema", func(d *unit.Definition) { d.StateSchema = nil }, "state-schema"},
		{"an empty state schema", func(d *unit.Definition) { d.StateSchema = json.RawMessage{} }, "state-schema"},
		{"an empty view schema", func(d *unit.Definition) { d.ViewSchema = json.RawMessage{} }, "view-schema"},
		{"an empty event type", func(d *unit.Definition) { d.Events = []string{"a", ""} }, "events"},
		{"an event type twice", func(d *unit.Definition) { d.Events = []string{"a", "b", "a"} }, "events"},
		{"an event type that is not UTF-8", func(d *unit.Definition) { d.Events = []string{"\xff"} }, "events"},
		{"config-bound without a digest", func(d *unit.Definition) { d.ConfigBound = true }, "config"},
		{"nothing that folds", func(d *unit.Definition) { d.Inline = nil }, "fold"},
		{"two that fold", func(d *unit.Definition) { d.Instance = &unit.Local{} }, "fold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := marks()
			c.make(&d)
			_, err := unit.Compile(d)
			var refused *unit.DefinitionError
			if !errors.As(err, &refused) {
				t.Fatalf("error is %v, want a *DefinitionError", err)
			}
			if refused.Rule != c.rule || refused.Key != d.Key || refused.Reason == "" {
				t.Errorf("refused by %+v, want rule %q", refused, c.rule)
			}
		})
	}
}

func TestARightDefinitionIsTaken(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(d *unit.Definition)
	}{
		{"as it is", func(*unit.Definition) {}},
		{"a key of 64 characters", func(d *unit.Definition) { d.Key = strings.Repeat("k", 64) }},
		{"every character of a key", func(d *unit.Definition) { d.Key = "azAZ09._/-" }},
		{"the largest version", func(d *unit.Definition) { d.StateVersion = event.MaxInteger }},
		{"version 0", func(d *unit.Definition) { d.StateVersion = 0 }},
		{"host-only", func(d *unit.Definition) { d.ViewSchema = nil }},
		{"every type", func(d *unit.Definition) { d.Events = nil }},
		{"no type", func(d *unit.Definition) { d.Events = []string{} }},
		{"config-bound", func(d *unit.Definition) { d.ConfigBound, d.ConfigDigest = true, "x" }},
		{"an instance", func(d *unit.Definition) { d.Inline, d.Instance = nil, &unit.Local{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := marks()
			c.make(&d)
			if _, err := unit.Compile(d); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASchemaStandsOnItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.json"), []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // a relative reference must not find it either
	onDisk := "file://" + filepath.ToSlash(filepath.Join(dir, "other.json"))

	for _, c := range []struct {
		name, schema string
		ok           bool
	}{
		{"true", `true`, true},
		{"false", `false`, true},
		{"empty", `{}`, true},
		{"white space", " {\n}\t", true},
		{"a reference into $defs", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, true},
		{"an anchor", `{"$ref":"#a","$defs":{"x":{"$anchor":"a","type":"string"}}}`, true},
		{"its own $id", `{"$id":"https://example.com/s","$ref":"/s#/$defs/a","$defs":{"a":true}}`, true},
		{"a resource inside", `{"$ref":"https://example.com/in","$defs":{"in":{"$id":"https://example.com/in","type":"string"}}}`, true},
		{"recursive", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, true},
		{"the draft that it names", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, true},
		{"an older draft that it names", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a"}`, true},

		{"not JSON", `{"type":`, false},
		{"two values", `{} {}`, false},
		{"a duplicate key", `{"type":"string","type":"number"}`, false},
		{"negative zero", `{"minimum":-0}`, false},
		{"a number", `1`, false},
		{"a list", `[]`, false},
		{"null", `null`, false},
		{"a type that does not exist", `{"type":"text"}`, false},
		{"a keyword of the wrong type", `{"minLength":"3"}`, false},
		{"a pattern with look-ahead", `{"pattern":"(?=a)"}`, false},
		{"a reference to nothing", `{"$ref":"#/$defs/a"}`, false},
		{"an anchor that is not there", `{"$ref":"#a"}`, false},
		{"a file", `{"$ref":"` + onDisk + `"}`, false},
		{"a file, below", `{"properties":{"a":{"items":{"$ref":"` + onDisk + `"}}}}`, false},
		{"a relative file", `{"$ref":"other.json"}`, false},
		{"a file under a file $id", `{"$id":"file://` + filepath.ToSlash(dir) + `/s.json","$ref":"other.json"}`, false},
		{"the network", `{"$ref":"http://localhost/other.json"}`, false},
		{"a dialect from elsewhere", `{"$schema":"` + onDisk + `"}`, false},
		{"the metaschema as a part", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, false},
		{"a dynamic reference", `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, false},
		{"itself, without going into the value", `{"$ref":"#"}`, false},
		{"itself, round about", `{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`, false},
		{"itself, by what a key asks for", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, false},
		{"itself, by what a key asked for in older drafts", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"b":["c"],"a":{"$ref":"#"}}}`, false},
		{"what a key asked for in older drafts", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"b":["c"],"a":{"type":"object"}}}`, true},
		{"a recursive reference", `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#"}}}`, false},
		{"dynamic reference outside", `{"$dynamicRef":"` + onDisk + `#a"}`, false},
		{"the largest size", `{"description":"` + strings.Repeat("x", unit.MaxSchemaBytes-len(`{"description":""}`)) + `"}`, true},
		{"its size", `{"description":"` + strings.Repeat("x", unit.MaxSchemaBytes) + `"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, rule := range []string{"state-schema", "view-schema"} {
				d := marks()
				if rule == "state-schema" {
					d.StateSchema = json.RawMessage(c.schema)
				} else {
					d.ViewSchema = json.RawMessage(c.schema)
				}
				_, err := unit.Compile(d)
				var refused *unit.DefinitionError
				switch {
				case c.ok && err != nil:
					t.Errorf("%s refused: %v", rule, err)
				case !c.ok && !errors.As(err, &refused):
					t.Errorf("%s taken", rule)
				case !c.ok && refused.Rule != rule:
					t.Errorf("refused by %q, want %q", refused.Rule, rule)
				}
				if err != nil {
					t.Log(err)
				}
			}
		})
	}
}

func TestASchemaIsRefusedWithThePlace(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"b":{"items":{"$ref":"other.json#/a"}},"a":{"type":"string"}}}`:                            `refers to "other.json" at $.properties.b.items.$ref;`,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"./x.json"}],"$defs":{"a":true}}`:                                  `refers to "x.json" at $.allOf[1].$ref;`,
		`{"properties":{"b":{"$ref":"x.json"},"a":{"$ref":"x.json#b"},"c":{"const":{"$comment":"x.json"}}}}`:       `refers to "x.json" at $.properties.a.$ref;`,
		`{"properties":{"a":{"minLength":"3"}}}`:                                                                   `wrong at $.properties.a.minLength: got string, want integer`,
		`{"required":["a",5]}`:                                                                                     `wrong at $.required[1]: got number, want string`,
		`{"properties":{"$ref":{"type":"string"},"a":{"enum":["$ref"]}},"$schema":"https://example.com/x/schema"}`: `refers to "https://example.com/x/schema" at $.$schema;`,
	} {
		d := marks()
		d.StateSchema = json.RawMessage(schema)
		if _, err := unit.Compile(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", schema, err, want)
		}
	}
}

func TestFolds(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		a, b   bool
	}{
		{"nil is every type", nil, true, true},
		{"empty is none", []string{}, false, false},
		{"a list is what it names", []string{"a"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := marks()
			d.Events = c.events
			u, err := unit.Compile(d)
			if err != nil {
				t.Fatal(err)
			}
			if u.Folds("a") != c.a || u.Folds("b") != c.b {
				t.Errorf("folds a, b: %t, %t; want %t, %t", u.Folds("a"), u.Folds("b"), c.a, c.b)
			}
			if n := testing.AllocsPerRun(100, func() { u.Folds("b") }); n != 0 {
				t.Errorf("%v allocations for a look-up", n)
			}
		})
	}
}

func TestCompiledSharesNothingWithWhatWasGiven(t *testing.T) {
	d := marks()
	u, err := unit.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	if string(u.StateSchema) != string(d.StateSchema) || string(u.ViewSchema) != string(d.ViewSchema) {
		t.Errorf("the schemas became %s and %s", u.StateSchema, u.ViewSchema)
	}
	want := string(u.StateSchema) + string(u.ViewSchema)
	d.Events[0] = "other"
	clear(d.StateSchema)
	clear(d.ViewSchema)
	if !u.Folds("test/mark") || u.Events[0] != "test/mark" || string(u.StateSchema)+string(u.ViewSchema) != want {
		t.Error("a change of what was given shows in what was compiled")
	}
}

func TestDigest(t *testing.T) {
	digest := func(change func(d *unit.Definition)) string {
		t.Helper()
		d := marks()
		change(&d)
		u, err := unit.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		return u.Digest
	}
	same := func(*unit.Definition) {}
	for _, c := range []struct {
		name  string
		a, b  func(d *unit.Definition)
		equal bool
	}{
		{"the same", same, same, true},
		{"key and version are compared elsewhere", same, func(d *unit.Definition) { d.Key, d.StateVersion = "x", 9 }, true},
		{"order of keys and white space of a schema",
			func(d *unit.Definition) { d.StateSchema = json.RawMessage(`{"type":"string","minLength":1}`) },
			func(d *unit.Definition) { d.StateSchema = json.RawMessage(`{ "minLength": 1, "type": "string" }`) }, true},
		{"order of event types",
			func(d *unit.Definition) { d.Events = []string{"a", "b"} },
			func(d *unit.Definition) { d.Events = []string{"b", "a"} }, true},
		{"a config digest that the fold does not depend on", same, func(d *unit.Definition) { d.ConfigDigest = "x" }, true},
		{"state schema", same, func(d *unit.Definition) { d.StateSchema = json.RawMessage(`true`) }, false},
		{"view schema", same, func(d *unit.Definition) { d.ViewSchema = json.RawMessage(`true`) }, false},
		{"no view schema", func(d *unit.Definition) { d.ViewSchema = json.RawMessage(`true`) }, func(d *unit.Definition) { d.ViewSchema = nil }, false},
		{"the two schemas changed over",
			func(d *unit.Definition) {
				d.StateSchema, d.ViewSchema = json.RawMessage(`true`), json.RawMessage(`{"type":"null"}`)
			},
			func(d *unit.Definition) {
				d.ViewSchema, d.StateSchema = json.RawMessage(`true`), json.RawMessage(`{"type":"null"}`)
			}, false},
		{"event types", same, func(d *unit.Definition) { d.Events = append(d.Events, "b") }, false},
		{"every type and none", func(d *unit.Definition) { d.Events = nil }, func(d *unit.Definition) { d.Events = []string{} }, false},
		{"types that run together",
			func(d *unit.Definition) { d.Events = []string{"ab", "c"} },
			func(d *unit.Definition) { d.Events = []string{"a", "bc"} }, false},
		{"config-bound", same, func(d *unit.Definition) { d.ConfigBound, d.ConfigDigest = true, "x" }, false},
		{"another config",
			func(d *unit.Definition) { d.ConfigBound, d.ConfigDigest = true, "x" },
			func(d *unit.Definition) { d.ConfigBound, d.ConfigDigest = true, "y" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a, b := digest(c.a), digest(c.b); (a == b) != c.equal {
				t.Errorf("digests %s and %s, want equal: %t", a, b, c.equal)
			}
		})
	}
	// Rows of older hosts carry it: a change of the algorithm makes every session fold again.
	for want, change := range map[string]func(*unit.Definition){
		"7e9a311a1fcc4d634cb56ea8bdaaabb4": same,
		"26bfa53a1fc78a409ec83b33620fccc7": func(d *unit.Definition) { d.ViewSchema = nil },
		"dafe135b55c3ff10aa8b569377cd378b": func(d *unit.Definition) { d.Events = nil },
		"ec80ba2a9110af28a0b06ff672eaeb0b": func(d *unit.Definition) { d.ConfigBound, d.ConfigDigest = true, "x" },
	} {
		if got := digest(change); got != want {
			t.Errorf("the digest of a known definition is %s, and was %s", got, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`true`, `{}`, `{"$ref":"#"}`, `{"$id":"a","$ref":"b"}`, `{"type":["string","null"],"enum":[1,"a"]}`,
		`{"$defs":{"a":{"$anchor":"x"}},"$dynamicRef":"#x"}`, `{"$schema":"http://json-schema.org/draft-04/schema#","id":"#a"}`,
		`{"properties":{"a":{"pattern":"^a$","minLength":1e2}},"unevaluatedProperties":false}`, `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"multipleOf":1e-300}}}`} {
		f.Add([]byte(s), []byte(`{"a":[1,"x",null,1e-400]}`))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if len(schema) > 4<<10 || len(value) > 4<<10 {
			t.Skip()
		}
		d := marks()
		d.StateSchema, d.ViewSchema = schema, nil
		u, err := unit.Compile(d)
		var refused *unit.DefinitionError
		if err != nil {
			if !errors.As(err, &refused) || refused.Rule != "state-schema" {
				t.Fatalf("refused with %T %v", err, err)
			}
			return
		}
		var wrong *unit.ValueError
		if err := u.CheckState(value, 0); err != nil && !errors.As(err, &wrong) {
			t.Fatalf("wrong value gives %T %v", err, err)
		}
	})
}
