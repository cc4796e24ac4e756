//go:build unix

package e2e

import (
	"bufio"
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

// An import into the store that is interrupted leaves no session there, and a tail ends; both let go of the directory.
func TestAnInterruptLeavesTheStoreAsItWas(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			flags := place(t)
			at(t, flags, "", "session", "create", "a").want(t, 0)
			at(t, flags, titleOf, "session", "append", "a").want(t, 0)
			interrupt := func(begin func(in io.Writer, out *bufio.Reader), args ...string) {
				t.Helper()
				cmd := command(t.Context(), append(args, flags...)...)
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				begin(in, bufio.NewReader(out))
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
				cmd.Wait()
				run{"", stderr.String(), cmd.ProcessState.ExitCode()}.want(t, 130)
			}
			interrupt(func(in io.Writer, _ *bufio.Reader) {
				io.WriteString(in, header)
				for seq := range int64(200) { // More than a pipe and what is read ahead hold.
					io.WriteString(in, note(seq, strings.Repeat("x", 8192)))
				}
			}, "import", "-", "--id", "torn")
			interrupt(func(_ io.Writer, out *bufio.Reader) {
				if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "session/title") {
					t.Errorf("it prints %q, %v", line, err)
				}
			}, "session", "tail", "a", "--json")
			if r := at(t, flags, "", "session", "list", "--json").want(t, 0); strings.Count(r.stdout, "\n") != 1 {
				t.Errorf("there are %s", r.stdout)
			}
		})
	}
}
