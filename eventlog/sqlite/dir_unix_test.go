//go:build unix

package sqlite

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can give directories away and mount them read-only")
	}
}

const somebody = 12345

func TestADirectoryOfSomebodyElseIsRefused(t *testing.T) {
	asRoot(t)
	dir := t.TempDir()
	if err := os.Chown(dir, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir, Options{})
	if e := as[*DirError](t, "Open", err); e.Problem != Foreign {
		t.Errorf("%+v", e)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("there are %d files in it now", len(left))
	}
}

// asSomebody runs a child that is not root.
func asSomebody(t *testing.T, dir string) string {
	t.Helper()
	// The test binary lies where only root may look.
	binary := filepath.Join(filepath.Dir(dir), "child")
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	p := startCmd(t, cmd, "open", dir)
	said := p.line()
	_ = cmd.Wait()
	if said == "" {
		t.Fatalf("the child said nothing: %s", p.said.String())
	}
	return said
}

// passable makes a directory that others may pass through.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "foldhost-sqlite-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestADirectoryThatMayNotBeWrittenIsRefused(t *testing.T) {
	asRoot(t)
	above := passable(t)
	for name, prepare := range map[string]func(dir string) error{
		"closed":          func(dir string) error { return os.Mkdir(dir, 0o555) },
		"not to be made":  func(string) error { return nil },
		"files of others": func(dir string) error { return copyOf(made(t), dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(above, name)
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			if said := asSomebody(t, dir); said != string(ReadOnly) {
				t.Errorf("the child said %q", said)
			}
		})
	}
}

// copyOf copies a store into a directory that everybody may write, and whose files only root may.
func copyOf(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(to, lockName)); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(to, dbName), 0o444); err != nil {
		return err
	}
	return os.Chmod(to, 0o777)
}
