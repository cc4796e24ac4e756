package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// domain are todo, imagelimits and title with configs of their own.
func domain(t testing.TB) plugs {
	of := func(name, own string) config.Plugin {
		p := config.Plugin{Command: program(t, "github.com/foldhost/foldhost/plugins/"+name)}
		if own != "" {
			p.Config = json.RawMessage(own)
		}
		return p
	}
	return plugs{"todo": of("todo", `{"allowParallelInProgress":true}`), "imagelimits": of("imagelimits", `{"maxImagesPerMessage":20}`), "title": of("title", "")}
}

// withPresets gives the configuration presets, written as JSON; a config that is null is none.
func withPresets(t testing.TB, text string) func(*host.Options) {
	t.Helper()
	var presets map[string]map[string]*json.RawMessage
	if err := json.Unmarshal([]byte(text), &presets); err != nil {
		t.Fatal(err)
	}
	return func(o *host.Options) {
		o.Plugins.Config.Presets = map[string]config.Preset{}
		for name, plugins := range presets {
			o.Plugins.Config.Presets[name] = config.Preset{}
			for plugin, own := range plugins {
				o.Plugins.Config.Presets[name][plugin] = nil
				if own != nil {
					o.Plugins.Config.Presets[name][plugin] = *own
				}
			}
		}
	}
}

// presetSession makes a session of a preset; empty is none.
func presetSession(t testing.TB, h *host.Host, id, preset string) *session.Session {
	t.Helper()
	header := event.Header{ID: id}
	if preset != "" {
		header.AgentPreset = &preset
	}
	s, err := h.Sessions().Create(context.Background(), session.New{Header: header})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inPreset is a plugin as a set has it; empty is the default set.
func inPreset(t testing.TB, h *host.Host, preset, name string) host.Plugin {
	t.Helper()
	all, err := h.PresetPlugins(context.Background(), preset)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p host.Plugin) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("preset %q has no plugin %q", preset, name)
	}
	return all[i]
}

const threePresets = `{
	"single": {"todo": {"allowParallelInProgress":false}, "imagelimits": {"maxImagesPerMessage":3, "maxImageBytes":100}},
	"same":   {"todo": {"allowParallelInProgress":false}, "imagelimits": {"maxImageBytes":100, "maxImagesPerMessage":3}, "title": null},
	"bare":   {"imagelimits": null, "title": null}}`

// Given sessions of several presets at the same time, then each has the values and the tools of its own set.
func TestEachSetHasItsOwnValuesAndTools(t *testing.T) {
	h := openHost(t, domain(t), withPresets(t, threePresets))
	both := `{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`
	for _, x := range []struct {
		preset string
		keys   string
		images int64
		takes  bool
	}{{"", "[imageLimits title todos]", 20, true}, {"single", "[imageLimits todos]", 3, false}, {"same", "[imageLimits title todos]", 3, false}} {
		s := presetSession(t, h, "s"+x.preset, x.preset)
		block := current(t, h, s)
		keys := []string{}
		for key := range block.Values {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		same(t, "the keys of "+x.preset, fmt.Sprint(keys), x.keys)
		n, _ := event.Integer(event.Lookup(block.Values["imageLimits"], "maxImagesPerMessage"))
		same(t, "the images of "+x.preset, n, x.images)
		r, err := call(t, h, s, "todo_write", both)
		if err != nil || r.IsError == x.takes {
			t.Errorf("preset %q: %+v, %v", x.preset, r, err)
		}
	}
	bare := presetSession(t, h, "bare", "bare")
	var unknown *host.UnknownToolError
	if _, err := call(t, h, bare, "todo_write", both); !errors.As(err, &unknown) || unknown.Preset != "bare" {
		t.Errorf("a tool of another set: %v", err)
	}
	// What is no todo/write is refused here as well: somebody owns the type, and the set may have todo one day.
	var rule *event.Error
	if _, err := bare.Append(t.Context(), "todo/write", map[string]int{"todos": 7}, session.Intent{}); !errors.As(err, &rule) || rule.Code != host.CodeEventSchema {
		t.Errorf("a bad event: %v", err)
	}
}

// Given presets with equal configs, then one process serves them, and the list says whom each serves.
func TestEqualConfigsShareAProcess(t *testing.T) {
	h := openHost(t, domain(t), withPresets(t, strings.Replace(threePresets, `"imagelimits": null`, `"imagelimits": {"maxImagesPerMessage": 20}`, 1)))
	var got []string
	pids := map[int]bool{}
	for _, p := range h.Plugins(t.Context()) {
		got = append(got, fmt.Sprintf("%s %v %v", p.Name, p.Presets, p.PresetOnly))
		pids[p.Pid] = true
	}
	same(t, "the plugins", strings.Join(got, "; "), "imagelimits [bare] false; imagelimits [same single] true; title [bare same] false; todo [] false; todo [same single] true")
	same(t, "processes", len(pids), 5)
	same(t, "one of two presets", inPreset(t, h, "single", "todo").Pid, inPreset(t, h, "same", "todo").Pid)
	same(t, "one of a preset and the default set", inPreset(t, h, "bare", "imagelimits").Pid, inPreset(t, h, "", "imagelimits").Pid)
	var names []string
	all, err := h.PresetPlugins(t.Context(), "single")
	for _, p := range all {
		names = append(names, p.Name)
	}
	same(t, "the plugins of a preset", fmt.Sprint(names, err), "[imagelimits todo] <nil>")
	var unknown *host.UnknownPresetError
	if _, err := h.PresetPlugins(t.Context(), "none"); !errors.As(err, &unknown) || fmt.Sprint(unknown.Known) != "[bare same single]" {
		t.Errorf("an unknown preset: %v", err)
	}
	same(t, "tools of the default set", len(h.Tools()), 1)
}

// Given a process of a preset that dies, then the other of the same plugin does not notice, and what is restarted by name are both.
func TestAnInstanceDiesAndRestartsByItself(t *testing.T) {
	h := openHost(t, domain(t), withPresets(t, threePresets))
	standard, single := presetSession(t, h, "standard", ""), presetSession(t, h, "single", "single")
	current(t, h, standard, "imageLimits")
	current(t, h, single, "imageLimits")
	before, other := inPreset(t, h, "single", "imagelimits"), inPreset(t, h, "", "imagelimits")
	process, err := os.FindProcess(before.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is up again", func() bool {
		p := inPreset(t, h, "single", "imagelimits")
		return p.State == host.PluginReady && p.Pid != before.Pid
	})
	same(t, "restarts", inPreset(t, h, "single", "imagelimits").Restarts, 1)
	same(t, "the value", string(event.Lookup(current(t, h, single, "imageLimits").Values["imageLimits"], "maxImagesPerMessage")), "3")
	p := inPreset(t, h, "", "imagelimits")
	same(t, "the other", fmt.Sprint(p.State, p.Pid, p.Restarts), fmt.Sprint(host.PluginReady, other.Pid, 0))
	if err := h.RestartPlugin("imagelimits"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all instances are new", func() bool {
		for preset, restarts := range map[string]int{"": 1, "single": 2, "bare": 1} {
			if inPreset(t, h, preset, "imagelimits").Restarts != restarts {
				return false
			}
		}
		return true
	})
	if err := h.StopPlugin(t.Context(), "imagelimits"); err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Plugins(t.Context()) {
		same(t, p.Name+" is stopped", p.State == host.PluginStopped, p.Name == "imagelimits")
	}
}

// Given one poisonous event in a session of a preset, then that cell fails, and the process of the other set does not see it.
func TestAPoisonousEventIsOfItsSet(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)}, withPresets(t, `{"limited": {"wrong": {"limit":1}}}`))
	s := presetSession(t, h, "s", "limited")
	step(t, s, 1)
	poison(t, s, "exit")
	step(t, s, 2)
	eventually(t, "the cell is found", func() bool {
		block, err := h.Snapshot(t.Context(), s)
		return err == nil && block.Unavailable["count"].Code == registry.Faulted && len(block.Values) == 2
	})
	same(t, "restarts of the other", inPreset(t, h, "", "wrong").Restarts, 0)
	if inPreset(t, h, "limited", "wrong").Restarts == 0 {
		t.Error("the process did not die")
	}
}

// Given a preset that names what is not there, or a config that its plugin does not take, then it is said at its place, and everything else serves.
func TestWhatIsWrongInAPresetIsSaidAtItsPlace(t *testing.T) {
	p := domain(t)
	off := p["title"]
	off.Disabled = true
	p["title"] = off
	var mu sync.Mutex
	var text bytes.Buffer
	h := openHost(t, p, withPresets(t, `{
		"bare":  {"todo": null},
		"typo":  {"todo": {"allowParallelInProgress":"yes"}, "imagelimits": {"maxImagesPerMessage":1}},
		"lost":  {"ghost": {"a":1}, "title": null, "imagelimits": {"maxImagesPerMessage":1}}}`), func(o *host.Options) {
		o.Logger = slog.New(slog.NewTextHandler(locked{&mu, &text}, nil))
	})
	for _, x := range []struct {
		preset, plugin string
		state          host.PluginState
		says           string
	}{
		{"bare", "todo", host.PluginParked, "presets.bare.todo.config"},
		{"typo", "todo", host.PluginParked, "presets.typo.todo.config.allowParallelInProgress"},
		{"lost", "ghost", host.PluginMissing, "presets.lost.ghost names it, and there is no such plugin"},
		{"lost", "title", host.PluginMissing, "presets.lost.title names it, and plugins.title.disabled switches it off"},
		{"lost", "imagelimits", host.PluginReady, ""},
		{"typo", "imagelimits", host.PluginReady, ""},
		{"", "todo", host.PluginReady, ""},
		{"", "title", host.PluginDisabled, ""},
	} {
		got := inPreset(t, h, x.preset, x.plugin)
		if got.State != x.state || !strings.Contains(got.Reason, x.says) || (got.Reason == "") != (x.says == "") {
			t.Errorf("%s of %q is %s: %s", x.plugin, x.preset, got.State, got.Reason)
		}
	}
	troubled := 0
	for _, p := range h.Plugins(t.Context()) {
		if p.State == host.PluginParked || p.State == host.PluginMissing {
			troubled++
			same(t, "the presets of "+p.Name, fmt.Sprint(len(p.Presets), p.PresetOnly), "1 true")
		}
	}
	same(t, "in trouble", troubled, 4)
	s := presetSession(t, h, "s", "typo")
	current(t, h, s, "imageLimits")
	in, err := host.Inspect(t.Context(), p["todo"].Command, host.InspectOptions{Preset: "typo", Config: &config.File{Presets: map[string]config.Preset{"typo": {"todo": json.RawMessage(`{"allowParallelInProgress":1}`)}}}})
	if err == nil || !strings.Contains(err.Error(), "presets.typo.todo.config.allowParallelInProgress") {
		t.Errorf("%+v, %v", in, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for line := range strings.Lines(text.String()) {
		if n := strings.Count(line, " presets="); n > 1 || n == 0 && strings.Contains(line, "presets.typo") {
			t.Errorf("the log says %d times of which presets it is: %s", n, line)
		}
	}
	same(t, "a process of a preset is logged", strings.Contains(text.String(), " presets=typo"), true)
}

// Given a stored session with a preset that there is not, then the default set serves it, and that is said once.
func TestAnUnknownPresetOfAStoredSessionGetsTheDefaultSet(t *testing.T) {
	var mu sync.Mutex
	var text bytes.Buffer
	h := openHost(t, domain(t), withPresets(t, threePresets), func(o *host.Options) {
		o.Logger = slog.New(slog.NewTextHandler(locked{&mu, &text}, nil))
	})
	for _, id := range []string{"a", "b"} {
		s := presetSession(t, h, id, "gone")
		same(t, "the value", string(event.Lookup(current(t, h, s, "imageLimits").Values["imageLimits"], "maxImagesPerMessage")), "20")
		if r, err := call(t, h, s, "todo_write", `{"todos":[]}`); err != nil || r.IsError {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.Detach(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := h.Values(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	same(t, "how often it was said", strings.Count(text.String(), "preset=gone session=a"), 1)
	same(t, "how often it was said of the other", strings.Count(text.String(), "preset=gone session=b"), 0)
}

type locked struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// Given rows that were made with one config, then a session whose preset has another config now gets nothing of them that depends on it: neither a state
// that is bound to the config, nor a value that shows it.
func TestNoRowServesAnotherConfig(t *testing.T) {
	store := memory.New()
	defer store.Close()
	over := func(o *host.Options) { o.Store = store }
	open := func(limit, images int) *host.Host {
		p := domain(t)
		p["wrong"] = wrong(t, "bound")
		return openHost(t, p, over, withPresets(t, fmt.Sprintf(`{"p": {"wrong": {"limit":%d}, "imagelimits": {"maxImagesPerMessage":%d}}}`, limit, images)))
	}
	values := func(block registry.Block) string {
		return fmt.Sprintf("%s %s", block.Values["sum"], event.Lookup(block.Values["imageLimits"], "maxImagesPerMessage"))
	}
	listed := func(h *host.Host) string {
		items, err := h.ListValues(t.Context(), []string{"s"})
		if err != nil || len(items) != 1 {
			t.Fatalf("%v, %v", items, err)
		}
		return values(items[0].Block)
	}
	h := open(100, 3)
	s := presetSession(t, h, "s", "p")
	step(t, s, 1)
	step(t, s, 2)
	same(t, "with the first config", values(current(t, h, s, "sum", "imageLimits")), "203 3")
	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rows are written", func() bool { return listed(h) == "203 3" })
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(1000, 4)
	same(t, "in a list", listed(h), " ")
	block, err := h.Values(t.Context(), "s")
	same(t, "with the other", fmt.Sprintf("%s %v", values(block), err), "2003 4 <nil>")
	eventually(t, "the rows are made anew", func() bool { return listed(h) == "2003 4" })
	report, err := h.VerifyValues(t.Context(), "s")
	same(t, "differences", fmt.Sprint(len(report.Differences), err), "0 <nil>")
}

// A log with a preset is replayed by the plugins of that.
func TestALogIsReplayedByItsPreset(t *testing.T) {
	o := host.Options{Plugins: &host.PluginOptions{Dir: t.TempDir(), Config: &config.File{Plugins: plugs{"wrong": wrong(t, "bound")}}}}
	withPresets(t, `{"limited": {"wrong": {"limit":100}}}`)(&o)
	r, err := host.NewReplayer(host.ReplayerOptions{Plugins: o.Plugins})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for preset, want := range map[string]string{"": "0", "limited": "200", "never heard of": "0"} {
		header := event.Header{ID: "s", CreatedAt: 1}
		if preset != "" {
			header.AgentPreset = &preset
		}
		result, err := r.Replay(t.Context(), host.ReplayOptions{Header: header, Events: log("step", "step")})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the sum with preset "+preset, string(result.Values["sum"]), want)
	}
}

// Given plugins of this process, then they are of the presets that name them without a config, where the first by name still serves.
func TestAResidentPluginIsOfThePresetsThatNameIt(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)}, withPresets(t, `{"goals": {"goal": null, "later": null}, "configured": {"goal": {}}, "none": {}}`))
	lacks := func(preset string) (names []string) {
		all, err := h.PresetPlugins(t.Context(), preset)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.State == host.PluginMissing {
				names = append(names, p.Name)
			}
		}
		return names
	}
	same(t, "missing before", fmt.Sprint(lacks("goals")), "[goal later]")
	remove, err := h.Add(goal("goal"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "missing", fmt.Sprint(lacks("goals"), lacks("configured"), lacks("none")), "[later] [goal] []")
	s := presetSession(t, h, "s", "goals")
	step(t, s, 1)
	same(t, "its keys", fmt.Sprint(len(current(t, h, s, "goals").Values)), "1")
	if r, err := call(t, h, s, "set_goal", `{"goal":"rest"}`); err != nil || r.IsError || len(r.Events) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	same(t, "where it is", fmt.Sprint(inPreset(t, h, "", "goal").Presets), "[goals]")
	for _, preset := range []string{"configured", "none"} {
		s := presetSession(t, h, preset, preset)
		block, err := h.Snapshot(t.Context(), s)
		same(t, "the keys of "+preset, fmt.Sprint(len(block.Values), err), "0 <nil>")
		var unknown *host.UnknownToolError
		if _, err := call(t, h, s, "set_goal", `{}`); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", preset, err)
		}
	}
	later := goal("later")
	later.Events, later.Units, later.Tools[0].Reads = nil, []unit.Definition{number("laters")}, nil
	if _, err := h.Add(later); err != nil {
		t.Fatal(err)
	}
	same(t, "the one that is shadowed", inPreset(t, h, "goals", "later").Tools[0].ShadowedBy, "goal")
	remove()
	same(t, "missing once it is gone", fmt.Sprint(lacks("goals")), "[goal]")
	same(t, "and not shadowed any more", inPreset(t, h, "goals", "later").Tools[0].ShadowedBy, "")
}

// Given two plugins that claim one event type and offer one tool, then in each set both are of the first that is in it; and a preset without either still refuses a bad event.
func TestATypeAndAToolBelongToTheFirstOfTheSet(t *testing.T) {
	h := openHost(t, plugs{"a": wrong(t, "prefix=a/"), "b": wrong(t, "prefix=b/"), "c": wrong(t, "prefix=c/", "owns=c/thing")},
		withPresets(t, `{"only b": {"b": null}, "only c": {"c": null}, "other b": {"b": {"limit": 1}}}`))
	for _, x := range []struct{ set, plugin, shadowed, refused string }{
		{"", "a", "", "[]"}, {"", "b", "a", `[event type "wrong/added": "wrong/added" belongs to plugin "a", which comes first; nobody else can own it]`},
		{"only b", "b", "", "[]"}, {"only c", "c", "", "[]"},
	} {
		p := inPreset(t, h, x.set, x.plugin)
		same(t, fmt.Sprintf("who shadows %s in %q", x.plugin, x.set), p.Tools[0].ShadowedBy, x.shadowed)
		same(t, fmt.Sprintf("what %s is refused in %q", x.plugin, x.set), fmt.Sprint(p.Refused), x.refused)
	}
	s := presetSession(t, h, "b", "only b")
	step(t, s, 1)
	if r, err := call(t, h, s, "add", `{"n":7}`); err != nil || r.IsError || len(r.Events) != 1 || r.Events[0].Type != "wrong/added" || string(r.Value) != `{"seq":0,"count":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	var rule *event.Error
	s = presetSession(t, h, "c", "only c")
	if _, err := s.Append(t.Context(), "wrong/added", map[string]string{"n": "many"}, session.Intent{}); !errors.As(err, &rule) || rule.Code != host.CodeEventSchema {
		t.Errorf("a bad event: %v", err)
	}
}

// Given an upgrade of a plugin with several configs, then each comes to the new version, one after the other.
func TestAnUpgradeReachesEveryInstance(t *testing.T) {
	version := t.TempDir() + "/version"
	write := func(n string) {
		if err := os.WriteFile(version, []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	h := openHost(t, plugs{"wrong": wrong(t, "version-file="+version)}, withPresets(t, `{"limited": {"wrong": {"limit":1}}}`))
	sets := []string{"", "limited"}
	for _, set := range sets {
		step(t, presetSession(t, h, "s"+set, set), 1)
	}
	write("2")
	if err := h.RestartPlugin("wrong"); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		eventually(t, "the new version serves "+set, func() bool {
			p := inPreset(t, h, set, "wrong")
			return len(p.Refused) == 0 && len(p.Units) == 3 && p.Units[0].StateVersion == 2
		})
		s, err := h.Sessions().Open(t.Context(), "s"+set)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the value", value(t, h, s, "count"), "1")
	}
}
