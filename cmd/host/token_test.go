package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The first token of the file goes to the server: of the flag, else of the environment. A configuration is about its own server, and its tokens go to no other.
func TestWhichTokenIsSent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flag := write("flag", "# mine\nof-the-flag read\nother admin\n", 0o600)
	variable := write("variable", "of-the-variable read\n", 0o600)
	write("own", "of-the-file read\n", 0o600)
	config := write("foldhost.yaml", "tokenFile: own\n", 0o644)
	sent := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"sessions":[]}`)
	}))
	defer s.Close()
	for _, c := range []struct{ flag, variable, want string }{
		{"", "", ""},
		{flag, "", "Bearer of-the-flag"},
		{"", variable, "Bearer of-the-variable"},
		{flag, variable, "Bearer of-the-flag"},
	} {
		t.Setenv("FOLDHOST_TOKEN_FILE", c.variable)
		sent = "nothing came"
		out, err := call(t, "session", "list", "--url", s.URL, "--config", config, "--token-file", c.flag)
		if err != nil || sent != c.want {
			t.Errorf("%+v: %q, %v %s", c, sent, err, out)
		}
	}
	for name, path := range map[string]string{"none": filepath.Join(dir, "none"), "one that breaks the form": write("broken", "read of-the-flag\n", 0o600)} {
		sent = ""
		out, err := call(t, "session", "list", "--url", s.URL, "--token-file", path, "--json")
		var got struct{ Error failure }
		if json.Unmarshal([]byte(out), &got) != nil || got.Error.Code != "token-file-invalid" || exitCode(err) != exitFailure || sent != "" {
			t.Errorf("%s: %s %v, %q was sent", name, out, err, sent)
		}
		if strings.Contains(out, "of-the-flag") {
			t.Errorf("%s: it tells the token: %s", name, out)
		}
	}
}
