package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// quick are timeouts that make hangs short.
var quick = config.Timeouts{Start: 20 * time.Second, Describe: time.Second, Configure: time.Second, Register: time.Second,
	Batch: time.Second, Tool: 500 * time.Millisecond, Health: 2 * time.Second, Drain: 300 * time.Millisecond, Exit: 200 * time.Millisecond}

func withQuick(c config.Plugin) config.Plugin {
	c.Timeouts = quick
	return c
}

func TestAPluginThatDoesNotComeUpIsNamedAndHurtsNobody(t *testing.T) {
	for _, c := range []struct {
		mode  string
		state host.PluginState
		want  string // in the reason
	}{
		{"hang-describe", host.PluginBackoff, "describe"},
		{"hang-configure", host.PluginBackoff, "configure"},
		{"hang-register", host.PluginBackoff, "register"},
		{"exit-describe", host.PluginBackoff, "code 3"},
		{"exit-configure", host.PluginBackoff, "code 3"},
		{"exit-register", host.PluginBackoff, "code 3"},
		{"panic-configure", host.PluginBackoff, "code 2"},
		{"end-register-empty", host.PluginBackoff, "Registrations"},
		{"end-register", host.PluginBackoff, "Registrations"},
		{"not-serving", host.PluginBackoff, "NOT_SERVING"},
		{"no-health", host.PluginBackoff, "grpc.health.v1.Health"},
		{"hang-health", host.PluginBackoff, "health"},
		{"exit-health", host.PluginBackoff, "code 3"},
		{"config-problem", host.PluginParked, "$.limit"},
		{"required-config", host.PluginParked, "$.limit"},
		{"bad-config-schema", host.PluginParked, "config_schema"},
		{"owns=turn/start", host.PluginParked, "turn/start"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"bad": withQuick(wrong(t, c.mode)), "good": wrong(t, "prefix=good/")})
			// On a busy machine another of its starts may fail for another reason first.
			eventually(t, fmt.Sprintf("the bad one is in %s for %q", c.state, c.want), func() bool {
				p := plugin(t, h, "bad")
				return (p.State == c.state || p.State == host.PluginParked) && strings.Contains(p.LastError, c.want)
			})
			s := newSession(t, h, "s")
			step(t, s, 5)
			same(t, "the good plugin's value", value(t, h, s, "good/sum"), "5")
		})
	}
}

// TestWhatTheSystemWillNotExecuteIsParkedAtOnce: given a file whose start must fail in the same way again, it is tried once.
func TestWhatTheSystemWillNotExecuteIsParkedAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skipped: there are no scripts with #! here")
	}
	script := func(text string) config.Plugin {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return config.Plugin{Command: path}
	}
	long := wrong(t)
	long.Env = []string{"LONG=" + strings.Repeat("x", 4<<20)}
	for name, c := range map[string]config.Plugin{
		"an interpreter that is missing":    script("#!/no/such/shell\n"),
		"an interpreter that is no program": script("#!/dev/null\n"),
		"no interpreter":                    script("#!\n"),
		"no program":                        script("text"),
		"too much of an environment":        long,
	} {
		t.Run(name, func(t *testing.T) {
			h := openHost(t, plugs{"bad": c})
			p := plugin(t, h, "bad")
			if p.State != host.PluginParked || p.Reason == "" || p.Restarts != 0 {
				t.Errorf("it is %s after %d restarts: %s", p.State, p.Restarts, p.Reason)
			}
			t.Log(p.Reason)
		})
	}
}

func TestWhatIsWrongInARegistrationIsRefusedAndTheRestServes(t *testing.T) {
	for _, c := range []struct{ mode, what, name string }{
		{"bad-key", "unit", "no key!"},
		{"bad-schema", "unit", "unsound"},
		{"bad-tool", "tool", "no tool!"},
		{"bad-tool", "tool", "reader"},
	} {
		t.Run(c.mode+" "+c.name, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"wrong": wrong(t, c.mode)})
			p := plugin(t, h, "wrong")
			found := false
			for _, r := range p.Refused {
				found = found || r.What == c.what && r.Name == c.name && r.Err != nil
			}
			if !found || p.State != host.PluginReady {
				t.Errorf("%s: refused %v", p.State, p.Refused)
			}
			s := newSession(t, h, "s")
			step(t, s, 5)
			same(t, "the value", value(t, h, s, "sum"), "5")
		})
	}
}

func TestAnotherVersionOfAKeyIsRefusedForWhoComesLater(t *testing.T) {
	// Both start at once and offer their units one by one, so that who comes first with which is not known: of each unit one of them serves, and the other is named.
	h := openHost(t, plugs{"a": wrong(t, "version=1"), "b": wrong(t, "version=2", "owns=b/thing")})
	first, other := "a", map[string]string{"a": "b", "b": "a"}
	refused := map[string]int{}
	for name := range other {
		for _, r := range plugin(t, h, name).Refused {
			if conflict, ok := errors.AsType[*registry.VersionConflictError](r.Err); !ok || conflict.By.Plugin != other[name] {
				t.Errorf("refused %v", r)
			}
			if refused[r.Name]++; r.Name == "sum" {
				first = other[name]
			}
		}
	}
	same(t, "units that one of them is refused", len(refused), 3)
	for name, n := range refused {
		same(t, "plugins that are refused "+name, n, 1)
	}
	s := newSession(t, h, "s")
	step(t, s, 4)
	same(t, "the value", value(t, h, s, "sum"), "4")
	// When the first gives the keys back, the second gets them.
	if err := h.StopPlugin(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other is refused nothing", func() bool { return len(plugin(t, h, other[first]).Refused) == 0 })
	step(t, s, 5)
	same(t, "the value", value(t, h, s, "sum"), "9")
}

func TestABrokenProtocolEndsTheProcessAndNotTheHost(t *testing.T) {
	for _, c := range []struct{ mode, want string }{
		{"reply-twice", "answered"},
		{"reply-generation", "generation"},
		{"reply-unasked", "never asked"},
		{"reply-unknown-cell", "does not name"},
		{"reply-huge", "larger than"},
		{"reply-utf8", "cannot be read"},
		{"reply-refused", "not today"},
		{"reply-backwards", "batch goes from"},
		{"end-fold", "fold stream"},
		{"end-register-later", "Registrations"},
		{"fail-register-later", "Registrations"},
		{"hang-fold", "not answered"},
		{"exit-fold", "code 3"},
		{"panic-fold", "code 2"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"bad": withQuick(wrong(t, c.mode, "prefix=bad/")), "good": wrong(t, "prefix=good/", "owns=good/thing")})
			s := newSession(t, h, "s")
			for i := range 3 {
				step(t, s, i)
			}
			go h.Snapshot(context.Background(), s, "bad/sum")
			same(t, "the good plugin's value", value(t, h, s, "good/sum"), "3")
			eventually(t, "the bad one is found out", func() bool {
				h.Snapshot(context.Background(), s, "bad/sum")
				p := plugin(t, h, "bad")
				return strings.Contains(p.LastError, c.want) || strings.Contains(p.Reason, c.want)
			})
			step(t, s, 7)
			same(t, "the good plugin's value afterwards", value(t, h, s, "good/sum"), "10")
		})
	}
}

func TestAValueAgainstItsSchemaFaultsItsKey(t *testing.T) {
	for _, mode := range []string{"reply-wrong-value", "reply-no-json"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"wrong": wrong(t, mode)})
			s := newSession(t, h, "s")
			step(t, s, 1)
			eventually(t, "the key is faulted", func() bool {
				block, err := h.Snapshot(context.Background(), s, "sum")
				if err != nil {
					t.Fatal(err)
				}
				if v, there := block.Values["sum"]; there {
					t.Fatalf("served %s", v)
				}
				return block.Unavailable["sum"].Code == "faulted"
			})
			same(t, "the plugin", plugin(t, h, "wrong").State, host.PluginReady)
		})
	}
}

func TestAnswersOutOfOrderAcrossSessionsAreFine(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t, "out-of-order")})
	var all []*session.Session
	for i := range 6 {
		all = append(all, newSession(t, h, fmt.Sprint("s", i)))
	}
	for i := range 20 {
		for _, s := range all {
			step(t, s, i)
		}
	}
	for _, s := range all {
		same(t, "the value", value(t, h, s, "sum"), "190")
	}
	same(t, "restarts", plugin(t, h, "wrong").Restarts, 0)
}

func TestAPluginThatIgnoresDrainIsKilled(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t, "hang-drain"))})
	pid := plugin(t, h, "wrong").Pid
	h.Close()
	if alive(pid) {
		t.Error("it lives")
	}
}

// TestStreamsThatEndInADrainAreNoFault: given a plugin that ends its streams once it was asked to drain, it is waited for and not killed.
func TestStreamsThatEndInADrainAreNoFault(t *testing.T) {
	log := &exits{}
	h := openHost(t, plugs{"wrong": wrong(t, "end-streams-to-drain")}, func(o *host.Options) { o.Logger = slog.New(log) })
	same(t, "the plugin", plugin(t, h, "wrong").State, host.PluginReady)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if said := log.all(); len(said) != 1 || said[0] != "the process exited with code 0" {
		t.Errorf("it ended so: %q", said)
	}
}

// exits is a slog.Handler that keeps how processes ended.
type exits struct {
	mu   sync.Mutex
	said []string
}

func (e *exits) Enabled(context.Context, slog.Level) bool { return true }
func (e *exits) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *exits) WithGroup(string) slog.Handler            { return e }
func (e *exits) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "exit" {
			e.mu.Lock()
			e.said = append(e.said, a.Value.String())
			e.mu.Unlock()
		}
		return true
	})
	return nil
}

func (e *exits) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.said)
}

func TestTwoPluginsCannotOwnOneEventType(t *testing.T) {
	h := openHost(t, plugs{"b": wrong(t, "prefix=b/"), "a": wrong(t, "prefix=a/")})
	same(t, "what a is refused", len(plugin(t, h, "a").Refused), 0)
	refused := plugin(t, h, "b").Refused
	var owned *host.OwnedError
	if len(refused) != 1 || !errors.As(refused[0].Err, &owned) || owned.Owner != "a" || owned.Type != "wrong/added" {
		t.Errorf("b is refused %v", refused)
	}
}

func TestEventsOfOwnedTypesAreGuarded(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t, "exit-fold"))})
	s := newSession(t, h, "s")
	check := func(when string) {
		t.Helper()
		_, err := s.Append(t.Context(), "wrong/added", map[string]string{"n": "many"}, session.Intent{})
		var rule *event.Error
		var veto *session.VetoError
		if !errors.As(err, &veto) || !errors.As(err, &rule) || rule.Code != host.CodeEventSchema || rule.Path != "$.data.n" {
			t.Errorf("%s: %v", when, err)
		}
		_, _, err = s.AppendBatch(t.Context(), session.Batch{Items: []session.Item{
			{Type: "wrong/added", Data: []byte(`{"n":1}`)}, {Type: "wrong/added", Data: []byte(`{}`)}}})
		var at *event.IndexError
		if !errors.As(err, &at) || at.Index != 1 {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := s.Append(t.Context(), "wrong/added", map[string]int{"n": 1}, session.Intent{}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := s.Append(t.Context(), "nobody/owns", nil, session.Intent{}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("while it is up")
	step(t, s, 1) // It dies of it.
	eventually(t, "it is down", func() bool {
		h.Snapshot(context.Background(), s)
		return plugin(t, h, "wrong").State != host.PluginReady
	})
	check("while it is down")
	// A seed and an import carry what was accepted elsewhere.
	old := []event.Draft{{Event: event.Event{Type: "wrong/added", Time: 1, Data: []byte(`{}`)}}}
	_, err := h.Sessions().Create(t.Context(), session.New{Header: event.Header{ID: "seeded"}, Seed: old})
	if err != nil {
		t.Errorf("a seed: %v", err)
	}
	if _, err := h.Sessions().Import(t.Context(), event.Header{ID: "imported", CreatedAt: 1}, log("wrong/added")); err != nil {
		t.Errorf("an import: %v", err)
	}
}

// TestTheGuardHoldsBeforeThePluginIsUp: what a file said about itself is remembered beyond the host.
func TestTheGuardHoldsBeforeThePluginIsUp(t *testing.T) {
	dir, broken := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "broken")
	cache := func(o *host.Options) { o.Plugins.CacheDir = dir }
	config := withQuick(wrong(t, "exit-describe-if="+broken))
	kept := func() []string {
		files, _ := filepath.Glob(filepath.Join(dir, "*.describe"))
		return files
	}
	first := openHost(t, plugs{"wrong": config}, cache)
	eventually(t, "it is kept", func() bool { return len(kept()) == 1 })
	first.Close()
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHost(t, plugs{"wrong": config}, cache)
	s := newSession(t, h, "s")
	eventually(t, "the guard holds", func() bool {
		_, err := s.Append(context.Background(), "wrong/added", map[string]string{"n": "many"}, session.Intent{})
		var rule *event.Error
		return errors.As(err, &rule) && rule.Code == host.CodeEventSchema
	})
	if state := plugin(t, h, "wrong").State; state == host.PluginReady {
		t.Error("the plugin came up, so that nothing was shown")
	}
	// A cache that is damaged is none.
	if err := os.WriteFile(kept()[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	h = openHost(t, plugs{"wrong": config}, cache)
	eventually(t, "the plugin is up", func() bool { return plugin(t, h, "wrong").State == host.PluginReady })
}

// TestOneFileIsAsManyPluginsAsItIsStartedAs: given one file as two plugins with different arguments, each owns what it says itself, also after restarts.
func TestOneFileIsAsManyPluginsAsItIsStartedAs(t *testing.T) {
	h := openHost(t, plugs{"a": wrong(t, "prefix=a/", "owns=a/thing"), "b": wrong(t, "prefix=b/", "owns=b/thing")})
	for range 3 {
		for _, name := range []string{"a", "b"} {
			p := plugin(t, h, name)
			if len(p.Refused) != 0 || len(p.Events) != 1 || p.Events[0].Type != name+"/thing" {
				t.Errorf("%s owns %v and is refused %v", name, p.Events, p.Refused)
			}
			if err := h.RestartPlugin(name); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it has restarted", func() bool { return plugin(t, h, name).Restarts > p.Restarts })
		}
	}
}
