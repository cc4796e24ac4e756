package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/internal/corpus"
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
)

// shipped are the plugins that ship, as programs and as units in this process.
func shipped(t testing.TB) (plugs, []host.Unit) {
	t.Helper()
	p, units := plugs{}, []host.Unit(nil)
	for name, u := range map[string]sdk.Unit{"todo": todounit.Projection, "title": titleunit.Projection, "tokenusage": usageunit.Projection, "imagelimits": limitsunit.New(limitsunit.Default())} {
		p[name] = config.Plugin{Command: program(t, "github.com/foldhost/foldhost/plugins/"+name)}
		def, err := u.Definition()
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, host.Unit{Plugin: name, Definition: def})
	}
	todo := p["todo"]
	todo.Config = json.RawMessage(`{"allowParallelInProgress":true}`)
	p["todo"] = todo
	return p, units
}

// samples are the logs of the repository.
func samples(t testing.TB) []string {
	t.Helper()
	own, err := filepath.Glob("../examples/sessions/*.jsonl")
	if err != nil || len(own) == 0 {
		t.Fatalf("no sample sessions: %v", err)
	}
	return own
}

func replayFile(t testing.TB, path string, replay func(context.Context, host.ReplayOptions) (*host.Result, error), units []host.Unit) []byte {
	t.Helper()
	log, err := host.OpenLog(t.Context(), path, host.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := replay(t.Context(), host.ReplayOptions{Header: log.Header(), Events: log.Events(), Units: units})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var out bytes.Buffer
	if err := r.WriteJSON(&out, ""); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestALogGivesTheSameBytesInProcessAndThroughProcesses(t *testing.T) {
	p, units := shipped(t)
	r, err := host.NewReplayer(host.ReplayerOptions{Plugins: &host.PluginOptions{Dir: t.TempDir(), Config: &config.File{Plugins: p}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	paths := samples(t)
	t.Run("recorded", func(t *testing.T) {
		for _, l := range corpus.Logs(t) { // Skips without the corpus.
			paths = append(paths, l.Path)
		}
	})
	for _, path := range paths {
		want := replayFile(t, path, host.Replay, units)
		got := replayFile(t, path, r.Replay, nil)
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n in process %s\nby processes %s", path, want, got)
		}
	}
}

// steps is a log of n events, of which every nth is a step and the others are of no interest.
func steps(n, every int) iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		for i := range n {
			d := event.Draft{Event: event.Event{Type: "other", Seq: int64(i), Time: 1, Data: json.RawMessage(`{"text":"something that nobody folds"}`)}}
			if i%every == 0 {
				d.Type, d.Data = "step", fmt.Appendf(nil, `{"n":%d}`, i)
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func imported(t testing.TB, h *host.Host, id string, n, every int) *session.Session {
	t.Helper()
	s, err := h.Sessions().Import(context.Background(), event.Header{ID: id, CreatedAt: 1}, steps(n, every))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnlyWhatIsFoldedIsSent: of a log with 5 % matching events 5 % are sent, each once for three units.
func TestOnlyWhatIsFoldedIsSent(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	s := imported(t, h, "s", 10_000, 20)
	current(t, h, s, "count", "sum", "last")
	st := pluginStats(t, h, s)
	same(t, "events sent", st.Events, 500)
	if st.Batches > 500/256+4 {
		t.Errorf("they were sent in %d batches", st.Batches)
	}
	before := st.Batches
	for range 50 {
		if _, err := s.Append(t.Context(), "other", map[string]int{}, session.Intent{}); err != nil {
			t.Fatal(err)
		}
		current(t, h, s, "count", "sum", "last")
	}
	same(t, "batches for events of no interest", pluginStats(t, h, s).Batches, before)
	// The pull asks for every change, in cells of its own.
	replayed, err := h.Sessions().Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	step(t, replayed, 1)
	current(t, h, replayed, "count", "sum", "last")
	same(t, "events sent after one more", pluginStats(t, h, s).Events, 501)
}

// TestAKillAtEveryFrameLosesNothing: the process dies once, at each frame of a fold in turn, before and after its answers.
func TestAKillAtEveryFrameLosesNothing(t *testing.T) {
	for _, mode := range []string{"die-recv", "die-before", "die-after"} {
		for frame := 1; frame <= 7; frame++ {
			t.Run(fmt.Sprint(mode, frame), func(t *testing.T) {
				t.Parallel()
				once := filepath.Join(t.TempDir(), "died")
				h := openHost(t, plugs{"wrong": wrong(t, fmt.Sprintf("%s=%d", mode, frame), "die-once="+once)})
				s := imported(t, h, "s", 1000, 1)
				sum := 999 * 1000 / 2
				same(t, "the sum", value(t, h, s, "sum"), fmt.Sprint(sum))
				for i := range 5 {
					step(t, s, i)
					sum += i
					block := current(t, h, s, "count", "sum", "last")
					same(t, "the values", fmt.Sprintf("%s %s %s", block.Values["count"], block.Values["sum"], block.Values["last"]), fmt.Sprintf("%d %d %d", 1001+i, sum, i))
				}
				if _, err := os.Stat(once); err != nil {
					t.Errorf("it never died: %v", err)
				}
			})
		}
	}
}
