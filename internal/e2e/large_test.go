package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log is streamed: what a run holds in memory is bounded whatever the length of the log and of its lines. 128 MiB are a Go runtime, its garbage
// and the index of the spool, and far less than the logs below.
const memoryLimit = 128 << 20

func TestAGiganticLogIsStreamed(t *testing.T) {
	if testing.Short() {
		t.Skip("generates hundreds of megabytes")
	}
	const events, text = 150_000, 2048 // 300 MiB
	feed := func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		io.WriteString(b, header)
		pad := strings.Repeat("x", text)
		for seq := range int64(events) {
			if seq%10_000 == 0 {
				fmt.Fprintf(b, `{"type":"session/title","seq":%d,"time":1,"data":{"title":"part %d"}}`+"\n", seq, seq/10_000)
				continue
			}
			if _, err := io.WriteString(b, note(seq, pad)); err != nil {
				return err
			}
		}
		return b.Flush()
	}
	t.Run("replay", func(t *testing.T) {
		r, peak := fed(t, feed, "replay", "--json", "-")
		o := r.want(t, 0).object(t)
		same(t, "events", o.Events, events)
		same(t, "title", string(o.Values["title"]), fmt.Sprintf(`"part %d"`, (events-1)/10_000))
		bounded(t, peak)
	})
	t.Run("import", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out.jsonl.zst")
		r, peak := fed(t, feed, "import", "--json", "-", out)
		var done struct {
			Converted bool
			Events    int64
		}
		if err := json.Unmarshal([]byte(r.want(t, 0).stdout), &done); err != nil || !done.Converted || done.Events != events {
			t.Fatalf("%v %+v", err, done)
		}
		bounded(t, peak)
		onlyFiles(t, filepath.Dir(out), "out.jsonl.zst")
	})
}

func TestAnEnormousLineIsRefusedUnread(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	for name, c := range map[string]struct {
		start string
		index *int64
	}{
		"a header": {`{"type":"session","version":0,"id":"s","createdAt":1,"x":"`, nil},
		"an event": {header + note(0, "a") + `{"type":"note","seq":1,"time":1,"data":"`, new(int64(1))},
	} {
		t.Run(name, func(t *testing.T) {
			r, peak := fed(t, func(w io.Writer) error {
				io.WriteString(w, c.start)
				block := bytes.Repeat([]byte("x"), 1<<20)
				for n := int64(0); n < size; n += int64(len(block)) {
					if _, err := w.Write(block); err != nil {
						return err // The reader had enough, as it should.
					}
				}
				io.WriteString(w, "\"}\n")
				return nil
			}, "replay", "--json", "-")
			o := r.want(t, 1).object(t)
			if index(o.Error.Index) != index(c.index) {
				t.Errorf("refused at %s, want %s", index(o.Error.Index), index(c.index))
			}
			if c.index != nil {
				same(t, "code", o.Error.Code, "too-large")
			}
			bounded(t, peak)
		})
	}
}

// fed runs the binary with what feed writes on its standard input, and says how much memory it took at most; 0 is unknown.
func fed(t *testing.T, feed func(io.Writer) error, args ...string) (run, int64) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	feed(out) // An error is the reader's way to say that it will not read on.
	out.Close()
	cmd.Wait()
	return run{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, peakMemory(cmd.ProcessState)
}

func bounded(t *testing.T, peak int64) {
	t.Helper()
	t.Logf("peak memory: %d MiB", peak>>20)
	if peak > memoryLimit {
		t.Errorf("it took %d MiB of memory, more than %d", peak>>20, memoryLimit>>20)
	}
}
