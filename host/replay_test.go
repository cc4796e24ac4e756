package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
)

var header = event.Header{ID: "s", CreatedAt: 1}

func options(types ...string) host.ReplayOptions {
	return host.ReplayOptions{Header: header, Events: log(types...),
		Units: []host.Unit{{Plugin: "test", Definition: number("a")}, {Plugin: "test", Definition: number("b")}}}
}

// changes prints changes as key@seq=value.
func changes(list []host.ReplayChange) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s@%d=%s", c.Key, c.Seq, c.Value))
	}
	return strings.Join(parts, " ")
}

func TestAReplayGivesChangesAndValues(t *testing.T) {
	for name, c := range map[string]struct {
		types   []string
		changes string
		value   string
	}{
		"of nothing":        {nil, "", "0"},
		"of other events":   {[]string{"x", "y"}, "", "0"},
		"of events to fold": {[]string{"x", "step", "y", "step"}, "a@1=1 b@1=1 a@3=2 b@3=2", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := host.Replay(t.Context(), options(c.types...))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "events", r.Events, int64(len(c.types)))
			same(t, "asOfSeq", r.AsOfSeq, int64(len(c.types)-1))
			same(t, "changes", changes(r.Changes), c.changes)
			same(t, "a", string(r.Values["a"]), c.value)
			same(t, "failed units", len(r.Unavailable), 0)
		})
	}
}

func TestAFailingUnitFailsAlone(t *testing.T) {
	for _, how := range []string{"break a", "panic a"} {
		t.Run(how, func(t *testing.T) {
			r, err := host.Replay(t.Context(), options("step", how, "step"))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "changes", changes(r.Changes), "a@0=1 b@0=1 b@2=2")
			same(t, "b", string(r.Values["b"]), "2")
			same(t, "the code of a", r.Unavailable["a"].Code, registry.Faulted)
			if _, served := r.Values["a"]; served {
				t.Error("a is served although it failed")
			}
			if _, failed := r.Unavailable["b"]; failed {
				t.Error("b failed with it")
			}
		})
	}
}

func TestAtEndsAReplay(t *testing.T) {
	for _, c := range []struct {
		at      int64
		changes string
	}{
		{-1, ""}, {0, "a@0=1 b@0=1"}, {1, "a@0=1 b@0=1"}, {2, "a@0=1 b@0=1 a@2=2 b@2=2"},
	} {
		o := options("step", "x", "step")
		o.At = &c.at
		r, err := host.Replay(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "events", r.Events, c.at+1)
		same(t, "asOfSeq", r.AsOfSeq, c.at)
		same(t, "changes", changes(r.Changes), c.changes)
	}
	o := options("step")
	beyond := int64(1)
	o.At = &beyond
	var short *host.NotReachedError
	if _, err := host.Replay(t.Context(), o); !errors.As(err, &short) || short.Seq != 0 {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestALogThatIsRefusedSaysWhere(t *testing.T) {
	o := options("step")
	o.Events = func(yield func(event.Draft, error) bool) {
		for d := range log("step", "step", "step") {
			if d.Seq == 1 {
				d.Seq = 5
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	_, err := host.Replay(t.Context(), o)
	r := host.RefusalOf(err)
	if r.Index == nil || *r.Index != 1 || r.Code != string(event.SeqNotContiguous) {
		t.Errorf("%v: %+v", err, r)
	}
	o = options("step")
	o.Header.ID = "no spaces please"
	if r := host.RefusalOf(func() error { _, err := host.Replay(t.Context(), o); return err }()); r.Index != nil || r.Code != string(event.HeaderInvalid) {
		t.Errorf("%+v", r)
	}
}

// watcher notes what it hears, and fails or calls where it is told to.
type watcher struct {
	heard  []string
	told   []host.ReplayChange
	failAt int64
	err    error
	call   func()
}

func (w *watcher) Accepted(h event.Header, events int64) error {
	w.heard = append(w.heard, fmt.Sprintf("%s has %d", h.ID, events))
	return nil
}

func (w *watcher) Event(ev *event.Event, list []host.ReplayChange) error {
	w.heard = append(w.heard, strings.TrimSpace(fmt.Sprintf("%d %s %s", ev.Seq, ev.Type, changes(list))))
	w.told = append(w.told, list...)
	if w.call != nil {
		w.call()
	}
	if w.err != nil && ev.Seq == w.failAt {
		return w.err
	}
	return nil
}

func TestAWatcherHearsEventsWithTheirChanges(t *testing.T) {
	w := &watcher{}
	o := options("x", "step", "y", "step", "z")
	o.Watch = w
	r, err := host.Replay(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what was heard", strings.Join(w.heard, "; "), "s has 5; 0 x; 1 step a@1=1 b@1=1; 2 y; 3 step a@3=2 b@3=2; 4 z")
	same(t, "changes in the result", changes(r.Changes), "")

	w = &watcher{err: errors.New("enough"), failAt: 1}
	o = options("x", "step", "y")
	o.Watch = w
	if _, err := host.Replay(t.Context(), o); !errors.Is(err, w.err) {
		t.Errorf("the watcher's error came back as %v", err)
	}
}

func TestAReplayEndsWithItsContext(t *testing.T) {
	t.Run("while it reads", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := options()
		o.Events = func(yield func(event.Draft, error) bool) {
			for d := range log("step", "step", "step") {
				if d.Seq == 1 {
					cancel()
				}
				if !yield(d, nil) {
					return
				}
			}
		}
		if _, err := host.Replay(ctx, o); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("while it folds", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := options("step", "step", "step")
		o.Watch = &watcher{call: cancel}
		if _, err := host.Replay(ctx, o); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
