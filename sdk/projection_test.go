package sdk_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

type tally struct {
	N    int    `json:"n"`
	Name string `json:"name,omitempty"`
}

type step struct {
	By int `json:"by"`
}

// tallies is a right definition of a plain state.
func tallies() sdk.ProjectionDefinition[tally, int] {
	return sdk.ProjectionDefinition[tally, int]{
		Key: "tally", StateVersion: 1,
		On: sdk.Handlers[tally]{
			"add": sdk.On(func(s tally, p step) tally { s.N += p.By; return s }),
		},
		View: func(s tally) int { return s.N },
	}
}

func TestADefinitionIsCheckedWhenItIsBuilt(t *testing.T) {
	type def = sdk.ProjectionDefinition[tally, int]
	isA := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	var refused *unit.DefinitionError
	var value *unit.ValueError
	var panicked *unit.PanicError
	for _, c := range []struct {
		name   string
		change func(d *def)
		is     func(error) bool // nil: taken
	}{
		{"as it is", func(*def) {}, nil},
		{"host-only", func(d *def) { d.View, d.HostOnly = nil, true }, nil},
		{"config-bound", func(d *def) { d.ConfigBound, d.ConfigDigest = true, "x" }, nil},
		{"schemas by hand", func(d *def) {
			d.StateSchema, d.ViewSchema = json.RawMessage(`{"type":"object"}`), json.RawMessage(`true`)
		}, nil},
		{"no view", func(d *def) { d.View = nil }, isA(&refused)},
		{"host-only with a view", func(d *def) { d.HostOnly = true }, isA(&refused)},
		{"a wrong key", func(d *def) { d.Key = "a b" }, isA(&refused)},
		{"a negative version", func(d *def) { d.StateVersion = -1 }, isA(&refused)},
		{"an empty event type", func(d *def) { d.On[""] = d.On["add"] }, isA(&refused)},
		{"an empty handler", func(d *def) { d.On["sub"] = sdk.Handler[tally]{} }, isA(&refused)},
		{"config-bound without a digest", func(d *def) { d.ConfigBound = true }, isA(&refused)},
		{"a schema by hand that does not compile", func(d *def) { d.ViewSchema = json.RawMessage(`{"type":"text"}`) }, isA(&refused)},
		{"the state of the empty log against a schema by hand", func(d *def) { d.StateSchema = json.RawMessage(`{"type":"null"}`) }, isA(&value)},
		{"the view of the empty log against a schema by hand", func(d *def) { d.ViewSchema = json.RawMessage(`{"minimum":1}`) }, isA(&value)},
		{"an init that panics", func(d *def) { d.Init = func() tally { panic("no") } }, isA(&panicked)},
		{"a view that panics", func(d *def) { d.View = func(tally) int { panic("no") } }, isA(&panicked)},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := tallies()
			c.change(&d)
			got, err := d.Definition()
			if c.is == nil {
				if err != nil || got.Key != d.Key {
					t.Errorf("got %v, %v", got.Key, err)
				}
				return
			}
			if err == nil || !c.is(err) {
				t.Errorf("error is %T %v", err, err)
			}
			if got.Key != "" || got.Inline != nil {
				t.Error("a definition came with the error")
			}
		})
	}
}

func TestATypeWithoutASchemaIsAnErrorThatNamesTheUnitAndTheField(t *testing.T) {
	type bad struct {
		Done chan bool
		Size int `jsonschema:"minimun=1"`
	}
	check := func(err error, role string) {
		t.Helper()
		var wrong *sdk.SchemaError
		var field *sdk.FieldError
		if !errors.As(err, &wrong) || wrong.Key != "u" || wrong.Role != role || !errors.As(err, &field) {
			t.Errorf("error is %v, want a *SchemaError of the %s", err, role)
		}
	}
	_, err := sdk.ProjectionDefinition[bad, int]{Key: "u", View: func(bad) int { return 0 }}.Definition()
	check(err, "State")
	_, err = sdk.ProjectionDefinition[int, bad]{Key: "u", View: func(int) bad { return bad{} }}.Definition()
	check(err, "View")
}

func TestEventsAreTheHandledTypes(t *testing.T) {
	none := tallies()
	none.On = nil
	two := tallies()
	two.On["a"] = two.On["add"]
	every := tallies()
	every.OnAny = sdk.OnRaw(func(s tally, _ *sdk.Event) (tally, bool, error) { return s, false, nil })
	for name, c := range map[string]struct {
		def  sdk.ProjectionDefinition[tally, int]
		want []string
	}{
		"none is none, ever": {none, []string{}},
		"sorted":             {two, []string{"a", "add"}},
		"every":              {every, nil},
	} {
		def, err := c.def.Definition()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(def.Events, c.want) || (def.Events == nil) != (c.want == nil) {
			t.Errorf("%s: events are %q, want %q", name, def.Events, c.want)
		}
	}
}

func TestAHandlerAddedAfterwardsIsNotSeen(t *testing.T) {
	d := tallies()
	def, err := d.Definition()
	if err != nil {
		t.Fatal(err)
	}
	clear(d.On)
	if r := plugintest.Check(def, []sdk.Event{{Type: "add", Data: json.RawMessage(`{"by":2}`)}}); string(r.Steps[len(r.Steps)-1].View) != "2" {
		t.Errorf("steps are %v", r.Steps)
	}
}

func TestHandlersByEventType(t *testing.T) {
	d := tallies()
	d.On["named"] = sdk.OnEvent(func(s tally, name string, ev *sdk.Event) (tally, error) {
		if name == "" {
			return s, errors.New("empty")
		}
		s.Name = name + ev.Type
		return s, nil
	})
	d.On["raw"] = sdk.OnRaw(func(s tally, ev *sdk.Event) (tally, bool, error) {
		n, ok := sdk.Integer(sdk.Lookup(ev.Data, "a", "b"))
		return tally{N: int(n)}, ok, nil
	})
	d.OnAny = sdk.On(func(s tally, _ any) tally { s.N += 100; return s })
	plugintest.Unit(t, d).
		Given(plugintest.Event("add", step{2}), plugintest.Event("named", "x"), plugintest.Event("something", nil), plugintest.Event("else", []int{1})).
		Then(202).ThenState(tally{202, "xnamed"}).ThenSent(2, 102, 202)
	plugintest.Unit(t, d).
		Given(plugintest.Event("raw", plugintest.JSON(`{"a":{"b":3}}`)), plugintest.Event("raw", plugintest.JSON(`{"a":{"b":"x"}}`))).
		Then(3).ThenSent(3)
	plugintest.Unit(t, d).Given(plugintest.Event("add", step{2}), plugintest.Event("named", "")).ThenFault(1).Then(2)
}

// TestWhatChangesNothingIsFoundByComparing covers the ways to return an equal state by accident.
func TestWhatChangesNothingIsFoundByComparing(t *testing.T) {
	def := func(u sdk.Unit) unit.Definition {
		t.Helper()
		d, err := u.Definition()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain := def(tallies())
	list := def(sdk.ProjectionDefinition[[]string, int]{
		Key: "list", View: func(s []string) int { return len(s) },
		On: sdk.Handlers[[]string]{"set": sdk.On(func(_ []string, all []string) []string { return all })},
	})
	pointer := def(sdk.ProjectionDefinition[*tally, int]{
		Key: "pointer", Init: func() *tally { return &tally{} }, View: func(s *tally) int { return s.N },
		On: sdk.Handlers[*tally]{
			"add":     sdk.On(func(s *tally, p step) *tally { return &tally{N: s.N + p.By} }),
			"inplace": sdk.On(func(s *tally, p step) *tally { s.N += p.By; return s }),
		},
	})
	raw := def(sdk.ProjectionDefinition[tally, int]{
		Key: "raw", View: func(s tally) int { return s.N },
		On: sdk.Handlers[tally]{"say": sdk.OnRaw(func(s tally, ev *sdk.Event) (tally, bool, error) {
			return s, string(ev.Data) == "true", nil
		})},
	})
	for _, c := range []struct {
		name    string
		def     unit.Definition
		typ     string
		data    []string
		changed []bool
	}{
		{"a plain state, returned as it was", plain, "add", []string{`{"by":0}`, `{"by":1}`, `{"by":0}`}, []bool{false, true, false}},
		{"a type without a handler", plain, "sub", []string{`{"by":1}`}, []bool{false}},
		{"a list that is equal and not the same", list, "set", []string{`["a"]`, `["a"]`, `["b"]`, `[]`, `[]`}, []bool{true, false, true, true, false}},
		{"null is not the empty list", list, "set", []string{`null`, `[]`, `null`}, []bool{false, true, true}},
		{"another pointer to an equal value", pointer, "add", []string{`{"by":0}`, `{"by":1}`}, []bool{false, true}},
		{"the same pointer to a value changed in place", pointer, "inplace", []string{`{"by":1}`, `{"by":0}`}, []bool{true, false}},
		{"a handler that says so itself is believed", raw, "say", []string{`true`, `false`}, []bool{true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.def.Inline.Init()
			if err != nil {
				t.Fatal(err)
			}
			for i, data := range c.data {
				next, changed, err := c.def.Inline.Apply(s, &sdk.Event{Type: c.typ, Seq: int64(i), Data: json.RawMessage(data)})
				if err != nil {
					t.Fatal(err)
				}
				if changed != c.changed[i] {
					t.Errorf("event %d (%s): changed is %t, want %t", i, data, changed, c.changed[i])
				}
				if changed {
					s = next
				}
			}
		})
	}
}

func TestAPayloadThatDoesNotDecodeNamesEventAndPlace(t *testing.T) {
	type inner struct {
		Items []struct {
			Size int `json:"size"`
		} `json:"items"`
	}
	def, err := sdk.ProjectionDefinition[tally, int]{
		Key: "u", View: func(s tally) int { return s.N },
		On: sdk.Handlers[tally]{
			"struct":  sdk.On(func(s tally, _ inner) tally { return s }),
			"number":  sdk.On(func(s tally, _ int) tally { return s }),
			"pointer": sdk.On(func(s tally, _ *int) tally { return s }),
			"raw":     sdk.On(func(s tally, _ json.RawMessage) tally { return s }),
			"any":     sdk.On(func(s tally, _ any) tally { return s }),
		},
	}.Definition()
	if err != nil {
		t.Fatal(err)
	}
	s, err := def.Inline.Init()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ typ, data, path string }{ // no path: taken
		{"struct", `{"items":[{"size":1}]}`, ""},
		{"struct", `{}`, ""},
		{"struct", `{"items":null,"more":true}`, ""},
		{"struct", `{"items":[{"size":"x"}]}`, "$.data.items[0].size"},
		{"struct", `{"items":{}}`, "$.data.items"},
		{"struct", `[]`, "$.data"},
		{"struct", `null`, "$.data"},
		{"number", `1`, ""},
		{"number", `1.5`, "$.data"},
		{"number", `1e300`, "$.data"},
		{"number", `null`, "$.data"},
		{"pointer", `null`, ""},
		{"raw", `null`, ""},
		{"any", `null`, ""},
	} {
		_, changed, err := def.Inline.Apply(s, &sdk.Event{Type: c.typ, Seq: 5, Data: json.RawMessage(c.data)})
		var wrong *sdk.PayloadError
		switch {
		case c.path == "" && (err != nil || changed):
			t.Errorf("%s %s: changed %t, error %v", c.typ, c.data, changed, err)
		case c.path != "" && !errors.As(err, &wrong):
			t.Errorf("%s %s: error is %v, want a *PayloadError", c.typ, c.data, err)
		case c.path != "" && (wrong.Type != c.typ || wrong.Seq != 5 || wrong.Path != c.path || wrong.Reason == ""):
			t.Errorf("%s %s: error is %+v, want path %s", c.typ, c.data, wrong, c.path)
		}
	}
}

func TestValuesThatJSONCannotCarryAreFaults(t *testing.T) {
	floats := sdk.ProjectionDefinition[[]float64, []float64]{
		Key: "floats", View: sdk.Same[[]float64],
		On: sdk.Handlers[[]float64]{"nan": sdk.On(func([]float64, any) []float64 { return []float64{math.NaN()} })},
	}
	plugintest.Unit(t, floats).Given(plugintest.Event("nan", nil)).ThenFault(0).Then(nil)
	texts := sdk.ProjectionDefinition[string, string]{
		Key: "texts", View: sdk.Same[string],
		On: sdk.Handlers[string]{
			"bytes": sdk.On(func(string, any) string { return "\xff" }),
			"html":  sdk.On(func(string, any) string { return "<a&b>\u2028" }),
		},
	}
	plugintest.Unit(t, texts).Given(plugintest.Event("bytes", nil)).ThenFault(0).Then("")
	o := plugintest.Unit(t, texts).Given(plugintest.Event("html", nil)).Then("<a&b>\u2028")
	if got, want := string(o.Report.Steps[1].View), "\"<a&b>\\u2028\""; got != want && got != "\"<a&b>\u2028\"" {
		t.Errorf("the view is %s, want %s", got, want)
	}
}

func TestAStateOfAnotherUnitIsRefused(t *testing.T) {
	def, err := tallies().Definition()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := def.Inline.Apply(3, &sdk.Event{Type: "add", Data: json.RawMessage(`{}`)}); err == nil {
		t.Error("apply takes it")
	}
	if _, err := def.Inline.View(nil); err == nil {
		t.Error("view takes it")
	}
	if _, err := def.Inline.Encode(nil); err == nil {
		t.Error("encode takes it")
	}
	if _, err := def.Inline.Decode(json.RawMessage(`"x"`)); err == nil {
		t.Error("decode takes it")
	}
}

func TestRawIsCheckedToo(t *testing.T) {
	def, err := tallies().Definition()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.Raw(def).Definition(); err != nil {
		t.Error(err)
	}
	def.Key = ""
	var refused *unit.DefinitionError
	if _, err := sdk.Raw(def).Definition(); !errors.As(err, &refused) {
		t.Errorf("error is %v, want a *DefinitionError", err)
	}
}

func BenchmarkApply(b *testing.B) {
	plain, err := tallies().Definition()
	if err != nil {
		b.Fatal(err)
	}
	type deep struct {
		Items []tally `json:"items"`
	}
	deepDef, err := sdk.ProjectionDefinition[deep, int]{
		Key: "deep", View: func(s deep) int { return len(s.Items) },
		Init: func() deep { return deep{make([]tally, 20)} },
		On:   sdk.Handlers[deep]{"add": sdk.On(func(s deep, p step) deep { return s })},
	}.Definition()
	if err != nil {
		b.Fatal(err)
	}
	for name, def := range map[string]unit.Definition{"plain": plain, "list of 20, unchanged": deepDef} {
		b.Run(name, func(b *testing.B) {
			s, err := def.Inline.Init()
			if err != nil {
				b.Fatal(err)
			}
			ev := sdk.Event{Type: "add", Data: json.RawMessage(`{"by":1}`)}
			b.ReportAllocs()
			for b.Loop() {
				if s, _, err = def.Inline.Apply(s, &ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
