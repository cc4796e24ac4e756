package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Given a server over a real store with the plugins that ship, then a recorded log goes in and out, a tool appends, a plugin starts again with its values, and the store is
// checked and copied while it is in use.
func TestServedCalls(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	want := func(status int, method, path, body string, headers ...string) string {
		t.Helper()
		got, text := s.do(method, path, body, headers...)
		if got != status {
			t.Fatalf("%s %s: %d %s", method, path, got, text)
		}
		return text
	}
	log := read(t, sample("dry-run.jsonl"))
	want(201, "POST", "/v1/import?id=dry", log, "Content-Type: application/x-ndjson", "Idempotency-Key: k")
	want(201, "POST", "/v1/import?id=dry", log, "Content-Type: application/x-ndjson", "Idempotency-Key: k")
	exported := want(200, "GET", "/v1/sessions/dry/export?pack=false", "")
	want(201, "POST", "/v1/import?id=again", exported, "Content-Type: application/x-ndjson")
	if again := want(200, "GET", "/v1/sessions/again/export?pack=false", ""); strings.Replace(again, `"again"`, `"dry"`, 1) != exported {
		t.Error("an export that was imported goes out otherwise")
	}
	todo := want(200, "POST", "/v1/sessions/dry/tools/todo_write", `{"arguments":{"todos":[{"content":"rest","status":"pending"}]}}`)
	if !strings.Contains(todo, `"isError":false`) {
		t.Errorf("the tool says %s", todo)
	}
	var plugin struct{ Pid, Restarts int }
	pid := func(text string) int {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &plugin); err != nil {
			t.Fatal(err)
		}
		return plugin.Pid
	}
	first := pid(want(200, "POST", "/v1/plugins/todo/restart", "{}"))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var list struct{ Plugins []json.RawMessage }
		if err := json.Unmarshal([]byte(want(200, "GET", "/v1/plugins", "")), &list); err != nil {
			t.Fatal(err)
		}
		now := 0
		for _, one := range list.Plugins {
			if strings.Contains(string(one), `"name":"todo"`) && strings.Contains(string(one), `"state":"ready"`) {
				now = pid(string(one))
			}
		}
		if now > 0 && now != first {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no other process came")
		}
	}
	if text := want(200, "POST", "/v1/sessions/dry/verify", "{}"); !strings.HasPrefix(text, `{"ok":true,`) {
		t.Errorf("verified: %s", text)
	}
	if text := want(200, "GET", "/v1/sessions/dry/history?maxMessages=1&keys=todos", ""); !strings.Contains(text, `"content":"rest"`) {
		t.Errorf("the tail has not what the tool wrote: %s", text)
	}
	if text := want(200, "POST", "/v1/store/check", `{"pages":true}`); !strings.Contains(text, `"problems":[],"more":0}}`) {
		t.Errorf("checked: %s", text)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	body, _ := json.Marshal(map[string]string{"path": path})
	if text := want(200, "POST", "/v1/store/backup", string(body)); !strings.Contains(text, `{"backup":{"path":`) {
		t.Errorf("copied: %s", text)
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	if text := want(409, "POST", "/v1/store/backup", string(body)); !strings.Contains(text, `"target-invalid"`) {
		t.Errorf("copied twice: %s", text)
	}
}
