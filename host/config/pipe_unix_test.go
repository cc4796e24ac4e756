//go:build unix

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestANamedPipeThatNobodyWritesToIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var unread *ReadError
	if _, err := Load(path); !errors.As(err, &unread) {
		t.Fatalf("%v", err)
	}
}

// What a shell makes of <(…): a pipe by the name of its descriptor.
func TestAPipeThatSomebodyWroteToIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("pluginDir: /here\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	file, err := Load(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if file.PluginDir != "/here" {
		t.Errorf("pluginDir %q", file.PluginDir)
	}
}
