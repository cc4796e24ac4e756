package registry

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/google/go-cmp/cmp"
)

// pastLog is a log with rows of the past, by key and in the order of their seqs.
type pastLog struct {
	*sampleLog
	past map[string][]Row
	err  error
	asks int
}

func (l *pastLog) Past(_ context.Context, key string, seq int64) (Row, bool, error) {
	l.asks++
	for _, row := range slices.Backward(l.past[key]) {
		if row.Seq <= seq {
			return row, true, l.err
		}
	}
	return Row{}, false, l.err
}

// TestTheColdPastStartsFromTheBestRowThatHolds: given 100 events, a read of the past at 79 folds no more than what is behind the latest row that can
// be used, wherever that is kept.
func TestTheColdPastStartsFromTheBestRowThatHolds(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	register(t, r, "p", fakeplugin.Counter("n", "a"), fakeplugin.HostOnly(fakeplugin.Counter("hidden")))
	b := r.setBindings("")[1]
	whole := newSampleLog("s", events(many(100, "a")...)...)
	at := func(seq int64) Row {
		_, state := folded(t, fakeplugin.Counter("n", "a"), whole.events, seq)
		return whole.row(b, seq, state, state)
	}
	// A phantom has a state that no fold would give.
	phantom := func(seq int64, spoil func(*Row)) Row {
		row := whole.row(b, seq, "1000", "1000")
		spoil(&row)
		return row
	}
	old := func(row *Row) { row.Ver++ }
	other := func(row *Row) { row.Anchor = "another event" }
	for name, x := range map[string]struct {
		latest *Row
		past   []Row
		err    error
		read   int // what is folded, and the events that rows stand on
	}{
		"none":                                 {nil, nil, nil, 80},
		"the latest":                           {new(at(59)), nil, nil, 20 + 1},
		"the latest is the best":               {new(at(59)), []Row{at(19)}, nil, 20 + 1},
		"the latest is beyond":                 {new(at(99)), []Row{at(19), at(69), at(89)}, nil, 10 + 1},
		"one of the very event":                {new(at(99)), []Row{at(79)}, nil, 1},
		"the past is the best":                 {new(at(59)), []Row{at(69)}, nil, 10 + 1},
		"of an older version, and below it":    {nil, []Row{at(39), phantom(49, old), phantom(69, old)}, nil, 40 + 1},
		"of an older version, and the latest":  {new(at(59)), []Row{at(39), phantom(69, old)}, nil, 20 + 1},
		"of another event, and below it":       {nil, []Row{at(39), phantom(69, other)}, nil, 40 + 2},
		"the latest of another event":          {new(phantom(69, other)), []Row{at(39), phantom(69, other)}, nil, 40 + 3},
		"a state against its schema is no row": {nil, []Row{phantom(69, func(row *Row) { row.Val = json.RawMessage(`"x"`) })}, nil, 80 + 1},
		"the past cannot be read":              {nil, []Row{phantom(69, func(*Row) {})}, errors.New("away"), 80},
		"nor can it, and there is a latest":    {new(at(59)), []Row{at(69)}, errors.New("away"), 20 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			rows := Rows{Session: "s", Incarnation: whole.incarnation, Rows: map[string]Row{}}
			if x.latest != nil {
				rows.Rows["n"] = *x.latest
			}
			for how, read := range map[string]func(log Log) (Block, error){
				"cold": func(log Log) (Block, error) { return r.SnapshotAt(t.Context(), "", rows, log, 79) },
				"live": func(log Log) (Block, error) {
					s := r.Attach(log, "", 99, rows)
					defer s.Detach(false)
					return s.SnapshotAt(t.Context(), 79)
				},
			} {
				log := &pastLog{sampleLog: whole.clone(), past: map[string][]Row{"n": x.past}, err: x.err}
				block, err := read(log)
				if err != nil || string(block.Values["n"]) != "80" || len(block.Values) != 1 || block.AsOfSeq != 79 || !block.Historical {
					t.Errorf("%s: block = %s (%v)", how, block.AppendJSON(nil), err)
				}
				if log.given["a"] != x.read {
					t.Errorf("%s: %d events were read, want %d", how, log.given["a"], x.read)
				}
			}
		})
	}
}

func TestTheColdPastIsNarrowedAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{MaxScratch: 1, ScratchWait: time.Second})
		defer r.Close()
		register(t, r, "p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "b"))
		log := newSampleLog("s", events("a", "b", "a")...)
		b, err := r.SnapshotAt(t.Context(), "", Rows{}, log, 2, "n", "absent")
		if err != nil || len(b.Values) != 1 || string(b.Values["n"]) != "2" || log.given["b"] != 0 {
			t.Errorf("block = %s (%v), read %v", b.AppendJSON(nil), err, log.given)
		}
		r.scratches <- struct{}{}
		var busy *BusyError
		if _, err := r.SnapshotAt(t.Context(), "", Rows{}, log, 2); !errors.As(err, &busy) {
			t.Errorf("with the one place taken the error is %v, want a *BusyError", err)
		}
		<-r.scratches
	})
}

func TestNeedsSayWhatIsToBeFoldedByWhoFoldsIt(t *testing.T) {
	r := New(Options{})
	t.Cleanup(r.Close)
	register(t, r, "here", fakeplugin.Counter("b"), fakeplugin.HostOnly(fakeplugin.Counter("d")))
	for plugin, keys := range map[string][]string{"p": {"a", "e"}, "q": {"c"}} {
		p := fakeplugin.New(fakeplugin.Counter(keys[0]), fakeplugin.Counter(keys[len(keys)-1]+"x"))
		t.Cleanup(p.Close)
		register(t, r, plugin, p.Definitions()...)
	}
	log := markLog("a", "b", "c", "d")
	of := map[string]*binding{}
	for _, b := range r.setBindings("") {
		of[b.Key] = b
	}
	rows := Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{
		"a": log.row(of["a"], 3, "4", "4"), "b": log.row(of["b"], -1, "0", "0"), "d": log.row(of["d"], 1, "2", ""), "c": {Ver: 9, Seq: 3, Anchor: "x"},
	}}
	want := [][]Need{{{"a", false, 4}, {"ex", false, 0}}, {{"b", false, 0}, {"d", true, 2}}, {{"c", false, 0}, {"cx", false, 0}}}
	if d := cmp.Diff(want, r.Needs("", rows)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]Need{{{"d", true, 2}}, {{"ex", false, 0}}}, r.Needs("", rows, "d", "ex", "absent")); d != "" {
		t.Error(d)
	}
}

// distantLog answers reads of what is far back only when it is let go.
type distantLog struct {
	*sampleLog
	far  int64
	gate chan struct{}
}

func (l *distantLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	if from < l.far {
		select {
		case <-l.gate:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	return l.sampleLog.ReadPage(ctx, from, to, types)
}

// TestAUnitThatIsNewToALongLogKeepsNobodyWaiting: given a log whose beginning is slow to read, a unit with a row near its end has its value within
// the wait, one without is named as behind, and has its value when it got there.
func TestAUnitThatIsNewToALongLogKeepsNobodyWaiting(t *testing.T) {
	const n, seen = 3 * nearby, 3*nearby - 5_000
	old, fresh := fakeplugin.Counter("old", "a"), fakeplugin.Counter("fresh", "a")
	for name, register := range map[string]func(w *world){
		"in this process": func(w *world) { w.register("p", old, fresh) },
		"in a plugin":     func(w *world) { w.plugin("p", old, fresh) },
	} {
		for how, read := range map[string]func(w *world, log Log, rows Rows) (wait func() Block, late func() Block){
			"a snapshot": func(w *world, log Log, rows Rows) (func() Block, func() Block) {
				s := w.r.Attach(log, "", n-1, rows)
				snapshot := func() Block {
					b, err := s.Snapshot(w.t.Context())
					if err != nil {
						w.t.Error(err)
					}
					return b
				}
				return snapshot, snapshot
			},
			"the past": func(w *world, log Log, rows Rows) (func() Block, func() Block) {
				at := func() Block {
					b, err := w.r.SnapshotAt(w.t.Context(), "", rows, log, n-1)
					if err != nil {
						w.t.Error(err)
					}
					return b
				}
				return at, at
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := given(t, Options{})
					register(w)
					all := newSampleLog("long", events(many(n, "a")...)...)
					all.page = 256
					log := &distantLog{all, nearby, make(chan struct{})}
					rows := Rows{Session: "long", Incarnation: all.incarnation, Rows: map[string]Row{}}
					for _, b := range w.r.setBindings("") {
						if b.Key == "old" {
							_, state := folded(t, old, all.events, seen)
							rows.Rows["old"] = all.row(b, seen, state, state)
						}
					}
					first, then := read(w, log, rows)
					if b := first(); string(b.Values["old"]) != "30000" || b.Unavailable["fresh"].Code != Behind || b.Unavailable["fresh"].Seq != -1 {
						t.Errorf("first: %s", b.AppendJSON(nil))
					}
					close(log.gate)
					synctest.Wait()
					if b := then(); string(b.Values["old"]) != "30000" || string(b.Values["fresh"]) != "30000" {
						t.Errorf("then: %s", b.AppendJSON(nil))
					}
				})
			})
		}
	}
}

func TestFoldedSaysHowFarACheckpointIsAheadOfTheRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, register := range map[string]func(w *world){
			"in this process": func(w *world) { w.register("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a", "b")) },
			"in a plugin":     func(w *world) { w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a", "b")) },
		} {
			w := given(t, Options{}, events("a", "b", "c", "a")...)
			register(w)
			folded := func(when string, want int64) {
				t.Helper()
				synctest.Wait()
				if got := w.s.Folded(); got != want {
					t.Errorf("%s, %s: %d folded, want %d", name, when, got, want)
				}
			}
			folded("nothing was asked", 0)
			w.snapshot("n")
			folded("n is built", 2)
			w.append("c", "c")
			folded("after events of nobody", 2)
			w.append("a", "b")
			folded("m comes in with an event, and is built", 2+2+3)
			rows, err := w.s.Checkpoint(t.Context())
			if err != nil || rows.Cut != 7 {
				t.Errorf("%s: rows of a cut at %d (%v)", name, rows.Cut, err)
			}
			w.s.Detach(false)
			w.attach(rows)
			w.snapshot()
			folded("from fresh rows", 0)
		}
	})
}

func TestACheckpointWaitsNoLongerThanItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a")...)
		w.register("here", fakeplugin.Counter("n", "a"))
		p, _ := w.plugin("there", fakeplugin.Counter("m", "a"))
		w.snapshot()
		release := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtEvent, release))
		w.append("a")
		began := time.Now()
		rows, err := w.s.CheckpointWithin(t.Context(), 100*time.Millisecond)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if got := slices.Sorted(maps.Keys(rows.Rows)); err != nil || rows.Cut != 2 || rows.Rows["n"].Seq != 2 || rows.Rows["m"].Seq > 1 {
			t.Errorf("rows of %q, %+v (%v)", got, rows, err)
		}
		close(release)
		synctest.Wait()
	})
}
