package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Given a server, then plugin list says how its plugins stand and not how others would, and plugin restart gives one a new process; both find it by the data directory. Once it has
// ended, list starts plugins of its own again, and there is nothing to restart.
func TestPluginCommandsAskTheServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, data)
	type stood struct {
		Name, State   string
		Pid, Restarts int
		Since         int64
	}
	list := func(args ...string) map[string]stood {
		t.Helper()
		var all struct{ Plugins []stood }
		r := foldhost(t, "", append([]string{"plugin", "list", "--json"}, args...)...).want(t, 0)
		if err := json.Unmarshal([]byte(r.stdout), &all); err != nil {
			t.Fatal(err)
		}
		byName := map[string]stood{}
		for _, p := range all.Plugins {
			byName[p.Name] = p
		}
		return byName
	}
	found, named := list("--data", data), list("--url", s.url)
	if len(found) != 4 || found["todo"].Pid == 0 || found["todo"].Pid != named["todo"].Pid || found["todo"].Since == 0 {
		t.Errorf("of the directory %+v, of the address %+v", found, named)
	}
	if out := foldhost(t, "", "plugin", "list", "--data", data).want(t, 0).stdout; !strings.Contains(out, "todo_write") {
		t.Errorf("for people:\n%s", out)
	}
	if own := list("--data", data, "--all"); own["todo"].Pid == found["todo"].Pid {
		t.Error("with --all those of the server were listed")
	}
	foldhost(t, "", "plugin", "list", "--url", s.url, "--all").want(t, 2)
	foldhost(t, "", "plugin", "list", "--url", s.url, "--preset", "none").want(t, 1)

	if r := foldhost(t, "", "plugin", "restart", "none", "--data", data).want(t, 1); !strings.Contains(r.stderr, "none") {
		t.Errorf("of a plugin that is not there: %s", r.stderr)
	}
	foldhost(t, "", "plugin", "restart", "todo", "--data", data).want(t, 0)
	for deadline := time.Now().Add(time.Minute); ; {
		now := list("--data", data)["todo"]
		if now.State == "ready" && now.Pid != 0 && now.Pid != found["todo"].Pid {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no other process came: %+v", now)
		}
	}
	s.kill()
	if own := list("--data", data); own["todo"].State != "ready" {
		t.Errorf("without a server: %+v", own)
	}
	r := foldhost(t, "", "plugin", "restart", "todo", "--data", data, "--json").want(t, 1)
	if !strings.Contains(r.stdout, `"no-server"`) {
		t.Errorf("without a server: %s", r.stdout)
	}
}
