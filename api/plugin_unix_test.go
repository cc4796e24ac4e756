//go:build unix

package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/foldhost/foldhost/host"
)

// A plugin that does not come up is listed with why, and can be started again.
func TestAPluginIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broken"), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := serve(t, func(o *options) { o.host.Plugins = &host.PluginOptions{Dir: dir, SocketDir: t.TempDir()} })
	for _, body := range []string{"", "{}"} {
		got := s.post("/v1/plugins/broken/restart", body).want(200).object()
		if got["name"] != "broken" || got["state"] == "ready" {
			t.Errorf("%v", got)
		}
	}
	if list := s.get("/v1/plugins").want(200).object()["plugins"].([]any); len(list) != 1 {
		t.Errorf("%v", list)
	}
}
