package sdk_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/sdk"
)

type pool struct {
	Size int    `json:"size" jsonschema:"minimum=1,default=4"`
	Name string `json:"name,omitempty"`
}

type settings struct {
	Flag  bool            `json:"flag"`
	Note  string          `json:"note,omitempty"`
	Count int64           `json:"count" jsonschema:"default=3"`
	Pool  pool            `json:"pool"`
	Names []string        `json:"names,omitempty"`
	By    map[string]pool `json:"by,omitempty"`
	List  []pool          `json:"list,omitempty" jsonschema:"nullable"`
}

// startWith starts a plugin with a config and gives what its author got.
func startWith[C any](t *testing.T, of func(func(*sdk.Registrar, C) error) sdk.Configuration, config string) (got C, digest string, err error) {
	t.Helper()
	p := sdk.Plugin{Name: "p", Configure: of(func(r *sdk.Registrar, c C) error {
		got, digest = c, r.ConfigDigest()
		return nil
	})}
	running, err := p.Start(sdk.StartOptions{Config: json.RawMessage(config)})
	if err == nil {
		if err := running.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return got, digest, err
}

// paths are those of the problems of a config.
func paths(t *testing.T, err error) []string {
	t.Helper()
	var c *sdk.ConfigError
	if !errors.As(err, &c) {
		t.Fatalf("got %v, want a ConfigError", err)
	}
	var out []string
	for _, p := range c.Problems {
		if p.Message == "" {
			t.Errorf("%s has no message", p.Path)
		}
		out = append(out, p.Path)
	}
	slices.Sort(out)
	return out
}

func TestAConfigIsDecodedWithItsDefaultsOrRefusedByPath(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		want         settings
		problems     []string
	}{
		{name: "what may be left out is", config: `{"flag":true}`, want: settings{Flag: true, Count: 3, Pool: pool{Size: 4}}},
		{name: "what is given counts", config: `{"flag":false,"note":"n","count":5,"pool":{"size":9,"name":"x"},"names":["a"]}`,
			want: settings{Note: "n", Count: 5, Pool: pool{9, "x"}, Names: []string{"a"}}},
		{name: "defaults within an object", config: `{"flag":true,"pool":{"name":"x"}}`, want: settings{Flag: true, Count: 3, Pool: pool{4, "x"}}},
		{name: "defaults within lists and maps", config: `{"flag":true,"list":[{},{"size":2}],"by":{"k":{}}}`,
			want: settings{Flag: true, Count: 3, Pool: pool{Size: 4}, List: []pool{{4, ""}, {2, ""}}, By: map[string]pool{"k": {4, ""}}}},
		{name: "null where it may be", config: `{"flag":true,"list":null}`, want: settings{Flag: true, Count: 3, Pool: pool{Size: 4}}},
		{name: "a required value is missing", config: `{}`, problems: []string{"$.flag"}},
		{name: "no config at all", config: ``, problems: []string{"$.flag"}},
		{name: "null", config: `null`, problems: []string{"$.flag"}},
		{name: "another type", config: `{"flag":"no"}`, problems: []string{"$.flag"}},
		{name: "an unknown key", config: `{"flag":true,"flog":1}`, problems: []string{"$.flog"}},
		{name: "a key in another case", config: `{"flag":true,"Flag":true}`, problems: []string{"$.Flag"}},
		{name: "an unknown key below", config: `{"flag":true,"pool":{"sise":1}}`, problems: []string{"$.pool.sise"}},
		{name: "all at once", config: `{"count":"x","pool":{"size":0}}`, problems: []string{"$.count", "$.flag", "$.pool.size"}},
		{name: "not an object", config: `[]`, problems: []string{"$"}},
		{name: "what fits the schema and not the Go type", config: `{"flag":true,"count":1e30}`, problems: []string{"$.count"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := startWith(t, sdk.Configured[settings], tt.config)
			if tt.problems != nil {
				if p := paths(t, err); !slices.Equal(p, tt.problems) {
					t.Errorf("got problems at %v, want %v (%v)", p, tt.problems, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestAConfigThatIsNotJSONIsRefused(t *testing.T) {
	for _, config := range []string{"{", `{"flag":true,"flag":false}`, "flag: true", "\xff"} {
		if _, _, err := startWith(t, sdk.Configured[settings], config); len(paths(t, err)) == 0 {
			t.Errorf("%q is taken", config)
		}
	}
}

func TestDefaultsOfAValueAreFilledInFieldByField(t *testing.T) {
	defaults := settings{Flag: true, Note: "d", Count: 7, Pool: pool{2, "p"}, Names: []string{"a", "b"}, By: map[string]pool{"x": {1, "one"}}}
	from := func(f func(*sdk.Registrar, settings) error) sdk.Configuration { return sdk.ConfiguredFrom(defaults, f) }
	for _, tt := range []struct {
		name, config string
		want         func(*settings)
	}{
		{"nothing given", ``, func(*settings) {}},
		{"one field", `{"flag":false}`, func(s *settings) { s.Flag = false }},
		{"one field of an object", `{"pool":{"size":5}}`, func(s *settings) { s.Pool.Size = 5 }},
		{"a list as a whole", `{"names":["z"]}`, func(s *settings) { s.Names = []string{"z"} }},
		{"a map as a whole", `{"by":{"y":{"size":3}}}`, func(s *settings) { s.By = map[string]pool{"y": {3, ""}} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := defaults
			tt.want(&want)
			got, _, err := startWith(t, from, tt.config)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
	if _, _, err := startWith(t, from, `{"pool":{"size":0}}`); !slices.Equal(paths(t, err), []string{"$.pool.size"}) {
		t.Error("a constraint does not hold beside a default")
	}
}

// Two fields of one type have one definition in the schema, and defaults of their own.
func TestFieldsOfOneTypeHaveTheirOwnDefaults(t *testing.T) {
	type two struct {
		A    pool   `json:"a"`
		B    pool   `json:"b"`
		More []pool `json:"more,omitempty"`
	}
	from := func(f func(*sdk.Registrar, two) error) sdk.Configuration {
		return sdk.ConfiguredFrom(two{A: pool{1, "a"}, B: pool{2, "b"}}, f)
	}
	got, _, err := startWith(t, from, `{"b":{"name":"x"},"more":[{"size":9}]}`)
	if want := (two{pool{1, "a"}, pool{2, "x"}, []pool{{9, ""}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// What a host checks before it sends a config must pass what the plugin would take, and say the defaults.
func TestTheSchemaOfAConfigSaysTheDefaults(t *testing.T) {
	d, err := sdk.Plugin{Name: "p", Configure: sdk.ConfiguredFrom(settings{Pool: pool{Size: 2}, Names: []string{"a"}}, func(*sdk.Registrar, settings) error { return nil })}.Describe(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"required"}, {"properties", "pool", "required"}} {
		if raw := sdk.Lookup(d.ConfigSchema, path...); raw != nil {
			t.Errorf("%v is %s", path, raw)
		}
	}
	for want, path := range map[string][]string{
		`["a"]`: {"properties", "names", "default"}, "2": {"properties", "pool", "properties", "size", "default"}, "0": {"properties", "count", "default"},
	} {
		if got := string(sdk.Lookup(d.ConfigSchema, path...)); got != want {
			t.Errorf("%v is %s, want %s", path, got, want)
		}
	}
}

func TestADigestTellsConfigsApartByWhatTheyMean(t *testing.T) {
	digest := func(config string) string {
		_, d, err := startWith(t, sdk.Configured[settings], config)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(`{"flag":true}`)
	for _, same := range []string{` { "flag" : true } `, `{"count":3,"flag":true}`, `{"pool":{"size":4},"flag":true}`} {
		if digest(same) != base {
			t.Errorf("%s has another digest", same)
		}
	}
	for _, other := range []string{`{"flag":false}`, `{"flag":true,"count":4}`, `{"flag":true,"pool":{"name":"x"}}`} {
		if digest(other) == base {
			t.Errorf("%s has the same digest", other)
		}
	}
}

func TestAPluginWithoutConfigTakesNone(t *testing.T) {
	for config, ok := range map[string]bool{"": true, "{}": true, "null": true, `{"a":1}`: false, "[]": false} {
		_, err := sdk.Plugin{Name: "p"}.Start(sdk.StartOptions{Config: json.RawMessage(config)})
		if (err == nil) != ok {
			t.Errorf("%q: %v", config, err)
		}
	}
}

func TestAConfigIsAStruct(t *testing.T) {
	for name, c := range map[string]sdk.Configuration{
		"a list":                    sdk.Configured(func(*sdk.Registrar, []string) error { return nil }),
		"a pointer":                 sdk.Configured(func(*sdk.Registrar, *settings) error { return nil }),
		"a field that cannot be it": sdk.Configured(func(*sdk.Registrar, struct{ C chan int }) error { return nil }),
	} {
		_, err := sdk.Plugin{Name: "p", Configure: c}.Start(sdk.StartOptions{})
		if e := (*sdk.SchemaError)(nil); !errors.As(err, &e) {
			t.Errorf("%s: got %v, want a SchemaError", name, err)
		}
	}
}

func TestTheAuthorRefusesAConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		f    func(*sdk.Registrar, settings) error
		want string
	}{
		"at a path": {func(*sdk.Registrar, settings) error { return sdk.BadConfig("$.note", "%d", 1) }, "$.note"},
	} {
		_, _, err := startWith(t, func(func(*sdk.Registrar, settings) error) sdk.Configuration { return sdk.Configured(tt.f) }, `{"flag":true}`)
		if !slices.Equal(paths(t, err), []string{tt.want}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	boom := sdk.Configured(func(*sdk.Registrar, sdk.None) error { panic("boom") })
	if _, err := (sdk.Plugin{Name: "p", Configure: boom}).Start(sdk.StartOptions{}); err == nil {
		t.Error("a panic in Configure is taken for success")
	}
}

// TestKeysOfAConfigAreMatchedAsTheyAreWritten: given a key in other letters, it is an unknown key, beside the right one or instead of it.
func TestKeysOfAConfigAreMatchedAsTheyAreWritten(t *testing.T) {
	for config, want := range map[string][]string{
		`{"flag":true,"pool":{"size":2}}`:                nil,
		`{"flag":true,"FLAG":false,"pool":{}}`:           {"$.FLAG"},
		`{"flag":true,"pool":{},"NOTE":"x"}`:             {"$.NOTE"},
		`{"flag":true,"pool":{"Size":2}}`:                {"$.pool.Size"},
		`{"flag":true,"pool":{},"by":{"A":{"NAME":""}}}`: {`$.by.A.NAME`},
	} {
		got, _, err := startWith[settings](t, sdk.Configured[settings], config)
		if want == nil {
			if err != nil || !got.Flag || got.Pool.Size != 2 {
				t.Errorf("%s: %+v, %v", config, got, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s is taken as %+v", config, got)
		} else if at := paths(t, err); !slices.Equal(at, want) {
			t.Errorf("%s: %v, want %v", config, at, want)
		}
	}
}
