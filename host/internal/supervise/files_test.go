package supervise_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
)

// program writes a file that could be a plugin.
func program(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, f *supervise.Files, path string) string {
	t.Helper()
	d, err := f.Digest(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestADigestFollowsTheFile(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	program(t, one, "one")
	program(t, other, "two")
	f := &supervise.Files{}
	first := digest(t, f, one)
	if len(first) != 64 || digest(t, f, one) != first || digest(t, f, other) == first {
		t.Errorf("digests %s and %s", first, digest(t, f, other))
	}
	program(t, one, "one, and more")
	if digest(t, f, one) == first {
		t.Error("a file that was changed has its old digest")
	}
	if err := os.Rename(other, one); err != nil {
		t.Fatal(err)
	}
	program(t, other, "two")
	if digest(t, f, one) != digest(t, f, other) {
		t.Error("a file that was replaced has its old digest")
	}
	var refused *launch.FileError
	if _, err := f.Digest(t.Context(), filepath.Join(dir, "none")); !errors.As(err, &refused) {
		t.Errorf("no file: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	program(t, other, strings.Repeat("long", 1<<20))
	for range 20 {
		if got, err := f.Digest(ended, one); err != nil || got == "" { // hashed above
			t.Fatalf("without time, what is known is %q, %v", got, err)
		}
	}
	if _, err := f.Digest(ended, other); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if digest(t, f, other) == "" {
		t.Error("once given up it has no digest")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := f.Digest(t.Context(), other); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestWhatAPluginSaidIsKnownBeforeItIsUp: to the next host that has the same file and starts it as the same; and until it says something else.
func TestWhatAPluginSaidIsKnownBeforeItIsUp(t *testing.T) {
	dir := t.TempDir()
	path, cache := filepath.Join(dir, "p"), filepath.Join(dir, "cache")
	program(t, path, "a plugin")
	said := &pluginproto.DescribeResponse{Name: "p", Version: "1", OwnedEvents: []*pluginproto.OwnedEvent{{Type: "p/thing"}}}
	// run is one host with the plugin; each has its own memory of files, and all of them share the directory.
	run := func(plugin lifetest.Plugin, change func(*life.Spec), then func(*rig)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := started(t, always(plugin), func(s *life.Spec, d *supervise.Deps) {
				s.Path = path
				d.Files = &supervise.Files{Dir: cache}
				if change != nil {
					change(s)
				}
			})
			then(r)
		})
	}
	// describes checks what is known of it while its first start has said nothing yet. Wait also waits for what reads files.
	describes := func(version string) func(*rig) {
		return func(r *rig) {
			r.t.Helper()
			synctest.Wait()
			got := ""
			if d := r.Facts().Description; d != nil {
				got = d.Version
			}
			if got != version {
				r.t.Errorf("it is known as version %q, want %q", got, version)
			}
		}
	}
	silent := lifetest.Plugin{Called: hangs("describe")}
	kept := func() []string {
		files, _ := filepath.Glob(filepath.Join(cache, "*"))
		return files
	}
	run(silent, nil, describes(""))
	run(lifetest.Plugin{Description: said}, nil, func(r *rig) { r.is(supervise.Ready, "once") })
	if len(kept()) != 1 {
		t.Fatalf("kept is %v", kept())
	}
	run(silent, nil, describes("1"))
	run(silent, func(s *life.Spec) { s.Args = []string{"another script"} }, describes(""))
	run(silent, func(s *life.Spec) { s.Env = []string{"A=B"} }, describes(""))
	program(t, kept()[0], "damaged")
	run(silent, nil, describes(""))
	run(lifetest.Plugin{Description: said}, nil, func(r *rig) { r.is(supervise.Ready, "again") })
	program(t, path, "another plugin")
	run(silent, nil, describes(""))
}
