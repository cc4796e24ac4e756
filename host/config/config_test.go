package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/config"
)

// path is where the file would lie; what is relative counts from its directory.
var path = filepath.Join(string(filepath.Separator), "etc", "fold", "foldhost.yaml")

func beside(elem ...string) string {
	return filepath.Join(append([]string{filepath.Dir(path)}, elem...)...)
}

func TestEveryName(t *testing.T) {
	f, err := config.Parse(path, []byte(`
data: ./data
listen: 127.0.0.1:7420
pluginDir: ../plugins
tokenFile: tokens
durability: relaxed
logFormat: json
logLevel: debug
allowedOrigins: ["https://a.example"]
plugins:
  todo:
    config: {allowParallelInProgress: true, list: [1, -2.5, 0x10, "1", null, 2024-01-02, ~], nested: {a: {b: []}}}
    env: {B: two, A: 1, C: yes, D: }
    args: [--fast, 3]
    disabled: false
    memoryLimit: 256MiB
    mtls: true
    command: bin/todo
    timeouts: {start: 30s, describe: 1s, configure: 2s, register: 3s, batch: 4s, tool: 5s, health: 6s, drain: 7s, exit: 500ms}
  title:
presets:
  single: {todo: {config: {allowParallelInProgress: false}}, title: {}, other: , none: {config: }, nil: {config: ~}, nothing: {config: {}}}
  empty: {}
  bare:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.File{
		Path: path, Data: beside("data"), Listen: "127.0.0.1:7420", PluginDir: beside("..", "plugins"), TokenFile: beside("tokens"), Durability: "relaxed",
		LogFormat: "json", LogLevel: "debug",
		AllowedOrigins: []string{"https://a.example"},
		Plugins: map[string]config.Plugin{
			"todo": {
				Config: []byte(`{"allowParallelInProgress":true,"list":[1,-2.5,16,"1",null,"2024-01-02",null],"nested":{"a":{"b":[]}}}`),
				Env:    []string{"A=1", "B=two", "C=yes", "D="}, Args: []string{"--fast", "3"}, MemoryLimit: 256 << 20, MTLS: true, Command: beside("bin", "todo"),
				Timeouts: config.Timeouts{Start: 30 * time.Second, Describe: time.Second, Configure: 2 * time.Second, Register: 3 * time.Second, Batch: 4 * time.Second,
					Tool: 5 * time.Second, Health: 6 * time.Second, Drain: 7 * time.Second, Exit: 500 * time.Millisecond},
			},
			"title": {}, // Named without settings, and still named.
		},
		// Absent and null are no config, and {} is one. A preset may name nothing.
		Presets: map[string]config.Preset{"single": {"todo": []byte(`{"allowParallelInProgress":false}`), "title": nil, "other": nil, "none": nil, "nil": nil, "nothing": []byte(`{}`)},
			"empty": {}, "bare": {}},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNothingIsAFileToo(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "a comment": "# nothing\n", "null": "~", "empty mapping": "{}"} {
		if f, err := config.Parse(path, []byte(text)); err != nil || len(f.Plugins) != 0 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func TestWhatIsWrongIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line, col  int
		path       string
	}{
		{"an unknown key", "data: x\nplugindir: y\n", 2, 1, "plugindir"},
		{"an unknown key of a plugin", "plugins:\n  todo:\n    konfig: {}\n", 3, 5, "plugins.todo.konfig"},
		{"an unknown timeout", "plugins: {todo: {timeouts: {begin: 1s}}}", 1, 29, "plugins.todo.timeouts.begin"},
		{"an unknown key of a preset", "presets: {p: {todo: {args: []}}}", 1, 22, "presets.p.todo.args"},
		{"a key twice", "data: x\ndata: y\n", 2, 1, "data"},
		{"a key of a config twice", "plugins: {todo: {config: {a: 1, a: 2}}}", 1, 33, "plugins.todo.config.a"},
		{"a list for a mapping", "plugins: []", 1, 10, "plugins"},
		{"text for a mapping", "plugins: {todo: yes please}", 1, 17, "plugins.todo"},
		{"a mapping for text", "data: {}", 1, 7, "data"},
		{"an empty path", `data: ""`, 1, 7, "data"},
		{"a number for a bool", "plugins: {todo: {disabled: 1}}", 1, 28, "plugins.todo.disabled"},
		{"a time without unit", "plugins: {todo: {timeouts: {start: 5}}}", 1, 36, "plugins.todo.timeouts.start"},
		{"a time below zero", "plugins: {todo: {timeouts: {start: -5s}}}", 1, 36, "plugins.todo.timeouts.start"},
		{"a size that is none", "plugins: {todo: {memoryLimit: lots}}", 1, 31, "plugins.todo.memoryLimit"},
		{"a size of nothing", "plugins: {todo: {memoryLimit: 0}}", 1, 31, "plugins.todo.memoryLimit"},
		{"no address", "listen: 7420", 1, 9, "listen"},
		{"every origin", `allowedOrigins: ["*"]`, 1, 17, "allowedOrigins[0]"},
		{"an origin with a path", `allowedOrigins: ["https://a.example", "https://b.example/"]`, 1, 17, "allowedOrigins[1]"},
		{"an origin without a scheme", `allowedOrigins: [a.example]`, 1, 17, "allowedOrigins[0]"},
		{"no durability", "durability: some", 1, 13, "durability"},
		{"no log format", "logFormat: xml", 1, 12, "logFormat"},
		{"no log level", "logLevel: Warn", 1, 11, "logLevel"},
		{"a name with a slash", "plugins: {a/b: {}}", 1, 11, "plugins.a/b"},
		{"a hidden name", "plugins: {.a: {}}", 1, 11, "plugins..a"},
		{"a number that JSON has not", "plugins: {todo: {config: {a: .nan}}}", 1, 30, "plugins.todo.config.a"},
		{"a binary", "plugins: {todo: {config: {a: !!binary aGk=}}}", 1, 30, "plugins.todo.config.a"},
		{"a merge", "plugins: {todo: {config: {<<: {a: 1}}}}", 1, 27, "plugins.todo.config"},
		{"a variable with =", `plugins: {todo: {env: {"A=B": c}}}`, 1, 24, "plugins.todo.env.A=B"},
		{"a second document", "data: x\n---\ndata: y\n", 2, 1, ""},
		{"no YAML", "data: [", 1, 1, ""},
		{"a tab", "plugins:\n\ttodo: {}\n", 2, 1, ""},
		{"a tab behind spaces", "plugins:\n  todo:\n  \tconfig: {}\n", 3, 3, ""},
		{"a tab in the first line", "\tplugins:\n", 1, 1, ""},
		{"a tab that is not in the indentation", "data: x\nplugins:\ttodo:\tx\n", 2, 1, ""},
		{"a tab before a list", "plugins:\n  todo:\n    args:\n\t- x\n", 4, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := config.Parse(path, []byte(c.text))
			var e *config.Error
			if !errors.As(err, &e) || f != nil {
				t.Fatalf("%+v, %v", f, err)
			}
			p := e.Problems[0]
			if p.Line != c.line || p.Column != c.col || p.Path != c.path || p.Reason == "" {
				t.Errorf("%+v", p)
			}
			if want := fmt.Sprintf("%s:%d:%d: ", path, c.line, c.col); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("it says %q", err)
			}
		})
	}
}

// TestNumbersOfAConfigKeepEveryDigit: given a number in any notation of YAML, the plugin is given that number, or it is refused at its place; it is never
// rounded and never text.
func TestNumbersOfAConfigKeepEveryDigit(t *testing.T) {
	for text, want := range map[string]string{
		"7": "7", "-7": "-7", "+7": "7", "0": "0", "-0": "0", "1_000": "1000",
		"0x10": "16", "0o17": "15", "017": "15", "0b11": "3", "08": "8", "-0x10": "-16",
		"1.10": "1.10", ".5": "0.5", "-.5": "-0.5", "5.": "5", "+1.5": "1.5", "1e3": "1e3", "1E+3": "1E+3", "007.50": "7.50", "1_0.5": "10.5",
		"18446744073709551615":                 "18446744073709551615",
		"123456789012345678901234567890":       "123456789012345678901234567890",
		"-123456789012345678901234567890":      "-123456789012345678901234567890",
		"0xffffffffffffffffffff":               "1208925819614629174706175",
		"0.1234567890123456789012345678901234": "0.1234567890123456789012345678901234",
		"!!float 3":                            "3",
		"!!int '12'":                           "12",
		"1e400":                                "",
		"-1e400":                               "",
		"1e999999999":                          "",
		"!!float 1e400":                        "",
		"-0.0":                                 "",
		".inf":                                 "",
		".nan":                                 "",
		"!!int 1.5":                            "",
		"!!int x":                              "",
		"0x" + strings.Repeat("f", 2000):       `"0x` + strings.Repeat("f", 2000) + `"`,
		strings.Repeat("9", 400):               "",
		"'1e400'":                              `"1e400"`,
		`"7"`:                                  `"7"`,
		"!!str 7":                              `"7"`,
		"12e":                                  `"12e"`,
		"1:30":                                 `"1:30"`,
		"1.2.3":                                `"1.2.3"`,
		"-":                                    "",
	} {
		f, err := config.Parse(path, []byte("plugins:\n  p:\n    config:\n      a: "+text+"\n"))
		if want != "" {
			if err != nil || string(f.Plugins["p"].Config) != `{"a":`+want+"}" {
				t.Errorf("%s: %v, want %s", text, err, want)
				if err == nil {
					t.Logf("it is %s", f.Plugins["p"].Config)
				}
			}
			continue
		}
		var e *config.Error
		if !errors.As(err, &e) {
			t.Errorf("%s is taken as %s", text, f.Plugins["p"].Config)
		} else if p := e.Problems[0]; p.Line != 4 || p.Column < 1 {
			t.Errorf("%s: %+v", text, p)
		}
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	_, err := config.Parse(path, []byte("one: 1\ntwo: 2\nlisten: x\n"))
	var e *config.Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Errorf("%v", err)
	}
}

func TestAliasesCannotMakeMuchOfLittle(t *testing.T) {
	var b strings.Builder
	b.WriteString("plugins: {todo: {config: {a0: &a0 [x, x, x, x, x, x, x, x, x]")
	for i := range 20 {
		fmt.Fprintf(&b, ", a%d: &a%d [", i+1, i+1)
		for range 9 {
			fmt.Fprintf(&b, "*a%d, ", i)
		}
		b.WriteString("x]")
	}
	b.WriteString("}}}")
	_, err := config.Parse(path, []byte(b.String()))
	var e *config.Error
	if !errors.As(err, &e) {
		t.Errorf("taken: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if f, err := config.Load(""); err != nil || f.Path != "" {
		t.Errorf("without a file: %+v, %v", f, err)
	}
	_, err := config.Load("named.yaml")
	var read *config.ReadError
	if !errors.As(err, &read) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file that is not there: %v", err)
	}
	if err := os.WriteFile(config.DefaultName, []byte("pluginDir: p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load("")
	if err != nil || filepath.Base(f.PluginDir) != "p" || !filepath.IsAbs(f.PluginDir) {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := config.Load(dir); !errors.As(err, &read) {
		t.Errorf("a directory: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "data: x", "plugins: {todo: {config: {a: [1, 2.5, {b: ~}]}}}", "a: &a [*a]", "? [x]\n: y", "presets: {p: {t: {config: 1}}}", "%YAML 1.2\n---\n", "\xff\xfe"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := config.Parse(path, text)
		if (file == nil) == (err == nil) {
			t.Fatalf("%v, %v", file, err)
		}
		var e *config.Error
		if err != nil && (!errors.As(err, &e) || len(e.Problems) == 0) {
			t.Fatalf("%v", err)
		}
		if err != nil {
			return
		}
		for name, p := range file.Plugins {
			if p.Config != nil && event.CheckLossless(p.Config, "$") != nil {
				t.Errorf("the config of %q is no lossless JSON: %s", name, p.Config)
			}
		}
	})
}
