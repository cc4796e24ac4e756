package host_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/registry"
)

// script is a log: a number is a step by it, a word a poison of that kind.
func script(what ...any) iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		for i, w := range what {
			d := event.Draft{Event: event.Event{Type: "step", Seq: int64(i), Time: 1, Data: fmt.Appendf(nil, `{"n":%v}`, w)}}
			if how, poison := w.(string); poison {
				d.Type, d.Data = "poison", json.RawMessage(`{"how":"`+how+`"}`)
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func newReplayer(t *testing.T, p plugs) *host.Replayer {
	t.Helper()
	r, err := host.NewReplayer(host.ReplayerOptions{
		Logger:  slog.New(slog.NewTextHandler(testLog{t}, nil)),
		Plugins: &host.PluginOptions{Dir: t.TempDir(), Config: &config.File{Plugins: p}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the replayer: %v", err)
		}
	})
	return r
}

// of are the changes of one key.
func of(key string, all []host.ReplayChange) string {
	return changes(slices.DeleteFunc(slices.Clone(all), func(c host.ReplayChange) bool { return c.Key != key }))
}

// poisoned checks the result of a log of steps 1, 2, a poison, 4.
func poisoned(t *testing.T, r *host.Result) {
	t.Helper()
	same(t, "the changes of the guilty unit", of("count", r.Changes), "count@0=1 count@1=2")
	u := r.Unavailable["count"]
	if _, served := r.Values["count"]; served || u.Code != registry.Faulted || u.FailedAt != 2 || u.Seq != 1 {
		t.Errorf("the guilty unit is %+v", u)
	}
	for key, want := range map[string]string{"sum": "sum@0=1 sum@1=3 sum@3=7", "last": "last@0=1 last@1=2 last@3=4", "good/sum": "good/sum@0=1 good/sum@1=3 good/sum@3=7"} {
		same(t, "the changes of "+key, of(key, r.Changes), want)
		same(t, "the value of "+key, string(r.Values[key]), want[strings.LastIndex(want, "=")+1:])
	}
	same(t, "units that failed", len(r.Unavailable), 1)
	ordered := slices.IsSortedFunc(r.Changes, func(a, b host.ReplayChange) int {
		return strings.Compare(fmt.Sprintf("%09d %s", a.Seq, a.Key), fmt.Sprintf("%09d %s", b.Seq, b.Key))
	})
	same(t, "ordered", ordered, true)
}

// TestAReplayFindsTheUnitThatEndsItsProcess: given a log at one event of which one unit of a plugin ends or blocks the process, that unit fails, at
// that event, and every other has its values and its changes, also for a watcher.
func TestAReplayFindsTheUnitThatEndsItsProcess(t *testing.T) {
	for _, how := range []string{"exit", "hang", "panic", "goroutine", "error"} {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s watched=%v", how, watched), func(t *testing.T) {
				t.Parallel()
				r := newReplayer(t, plugs{"wrong": withQuick(wrong(t)), "good": wrong(t, "prefix=good/", "only=sum", "owns=good/thing")})
				o := host.ReplayOptions{Header: header, Events: script(1, 2, how, 4)}
				w := &watcher{}
				if watched {
					o.Watch = w
				}
				res, err := r.Replay(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if watched {
					same(t, "changes that were told and kept", len(res.Changes), 0)
					res.Changes = w.told
				}
				poisoned(t, res)
				if message := res.Unavailable["count"].Message; how == "goroutine" && !strings.Contains(message, "panic: poisoned in a goroutine") {
					t.Errorf("the panic is not in %q", message)
				}
				if watched {
					same(t, "what was heard", strings.Join(w.heard, "; "), "s has 4; 0 step count@0=1 good/sum@0=1 last@0=1 sum@0=1; "+
						"1 step count@1=2 good/sum@1=3 last@1=2 sum@1=3; 2 poison; 3 step good/sum@3=7 last@3=4 sum@3=7")
				}
				same(t, "restarts of the other plugin", plugin(t, r.Host(), "good").Restarts, 0)
			})
		}
	}
}

// TestLogsThatAreReplayedTogetherDoNotSharePoison: given several logs at once of which some are poisoned, only those have a unit that failed.
func TestLogsThatAreReplayedTogetherDoNotSharePoison(t *testing.T) {
	for _, c := range []struct {
		how   string
		every int
	}{{"exit", 3}, {"hang", 3}, {"exit", 1}} {
		how, every := c.how, c.every
		t.Run(fmt.Sprintf("%s in every %d", how, every), func(t *testing.T) {
			t.Parallel()
			r := newReplayer(t, plugs{"wrong": withQuick(wrong(t)), "good": wrong(t, "prefix=good/", "only=sum", "owns=good/thing")})
			var all sync.WaitGroup
			for i := range 6 {
				all.Go(func() {
					what := []any{1, 2, how, 4}
					if i%every != 0 {
						what = []any{1, 2, 3, 4}
					}
					res, err := r.Replay(t.Context(), host.ReplayOptions{Header: header, Events: script(what...)})
					if err != nil {
						t.Error(err)
						return
					}
					if i%every == 0 {
						poisoned(t, res)
						return
					}
					same(t, "the changes of an innocent log", of("count", res.Changes), "count@0=1 count@1=2 count@2=3 count@3=4")
					same(t, "its values", fmt.Sprintf("%s %s %s %s", res.Values["count"], res.Values["sum"], res.Values["last"], res.Values["good/sum"]), "4 10 4 10")
					same(t, "its units that failed", len(res.Unavailable), 0)
				})
			}
			all.Wait()
			same(t, "restarts of the other plugin", plugin(t, r.Host(), "good").Restarts, 0)
		})
	}
}

// TestAReplayGivesUpAPluginThatIsParked: given a plugin that dies whatever it is given, its keys are named, and the others have their values.
func TestAReplayGivesUpAPluginThatIsParked(t *testing.T) {
	t.Parallel()
	r := newReplayer(t, plugs{"wrong": withQuick(wrong(t, "exit-fold")), "good": wrong(t, "prefix=good/", "only=sum", "owns=good/thing")})
	res, err := r.Replay(t.Context(), host.ReplayOptions{Header: header, Events: script(1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"count", "sum", "last"} {
		if code := res.Unavailable[key].Code; code != registry.Faulted && code != registry.Parked {
			t.Errorf("%s is %+v", key, res.Unavailable[key])
		}
	}
	same(t, "the value of the other plugin", string(res.Values["good/sum"]), "3")
}
