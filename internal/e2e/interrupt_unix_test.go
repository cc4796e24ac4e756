//go:build unix

package e2e

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnInterruptLeavesNothingHalfWritten(t *testing.T) {
	for name, args := range map[string][]string{
		"replay":          {"replay", "--json", "-"},
		"import":          {"import", "-", "out.jsonl"},
		"import replaces": {"import", "--force", "-", "kept.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "kept.jsonl"), []byte("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd := command(t.Context(), args...)
			cmd.Dir = dir
			var stdout, stderr bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			in.Close()
			// More than a pipe holds: once it is written, the program reads, and so listens to signals.
			io.WriteString(out, header)
			for seq := range int64(200) {
				io.WriteString(out, note(seq, strings.Repeat("x", 8192)))
			}
			// Standard input stays open: the program must end although it waits for more.
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			r := run{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
			r.want(t, 130)
			same(t, "stdout", r.stdout, "")
			onlyFiles(t, dir, "kept.jsonl")
			same(t, "the file that was there", read(t, filepath.Join(dir, "kept.jsonl")), "kept")
		})
	}
}
