package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

func at(seq int64) *int64 { return &seq }

// Given a source and a boundary, then the child has the prefix, or the fork is refused with a code and nothing is created.
func TestForkBoundary(t *testing.T) {
	reasons := []string{`{"kind":"completed"}`, `{"kind":"aborted","reason":{"kind":"user"}}`, `{"kind":"error","error":{"message":"m","code":"c"}}`,
		`{"kind":"aborted","reason":{"kind":"disposed"}}`, `{"kind":"max-tokens"}`, `{"kind":"interrupted"}`}
	type test struct {
		name     string
		source   []step
		boundary *int64
		types    []string // of the child without its end-seed
		code     session.ForkCode
	}
	whole := slices.Clip(types(events(drafts(one()...))))
	withNote := append(one(), note("after"))
	open := append(one(), turnStart(2), stepStart(2, 1), user("x"), assistant("", "c"), toolCall("c"))
	tests := []test{
		{"empty source", nil, nil, nil, ""},
		{"empty source with a boundary", nil, at(0), nil, session.ForkInvalidBoundary},
		{"whole", one(), nil, whole, ""},
		{"at the last seq", one(), at(5), whole, ""},
		{"with what follows the turn", withNote, nil, append(whole, "test/note"), ""},
		{"without what follows the turn", withNote, at(5), whole, ""},
		{"before any turn", append([]step{note("x")}, one()...), at(0), []string{"test/note"}, ""},
		{"negative", one(), at(-1), nil, session.ForkInvalidBoundary},
		{"the length", one(), at(6), nil, session.ForkInvalidBoundary},
		{"beyond exact integers", one(), at(1 << 53), nil, session.ForkInvalidBoundary},
		{"open at the end", open, nil, nil, session.ForkOpenTurn},
	}
	for seq := int64(6); seq <= 10; seq++ {
		tests = append(tests, test{"at the open " + open[seq].typ, open, at(seq), nil, session.ForkOpenTurn})
	}
	for _, reason := range reasons {
		end := step{typ: event.TurnEnd, data: `{"turn":1,"reason":` + reason + `}`}
		tests = append(tests, test{"ended with " + reason, []step{turnStart(1), end}, nil, []string{event.TurnStart, event.TurnEnd}, ""})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			store := memory.New()
			set := newSet(t, logtest.Short(store, 5), quiet())
			source := create(t, set, session.New{Header: event.Header{ID: "source", CWD: "/workspace"}})
			appendAll(t, source, tt.source...)
			if err := source.Detach(ctx); err != nil {
				t.Fatal(err)
			}
			child, err := set.Fork(ctx, "source", session.Fork{Boundary: tt.boundary, Child: "child"})
			if source.Live() {
				t.Error("the fork made its source live")
			}
			if tt.code != "" {
				if e := wantErr[*session.ForkError](t, err); e != nil && (e.Code != tt.code || e.Session != "source") {
					t.Errorf("got %s of %s, want %s", e.Code, e.Session, tt.code)
				} else if last := fmt.Sprint(len(tt.source) - 1); e != nil && e.Code == session.ForkInvalidBoundary && len(tt.source) > 0 && !strings.Contains(e.Reason, last) {
					t.Errorf("%q does not name the last seq, %s", e.Reason, last)
				}
				_, err := set.Open(ctx, "child")
				wantErr[*eventlog.NotFoundError](t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			log, n := logOf(t, child), int64(len(tt.types))
			wantEqual(t, "log", types(log), append(slices.Clip(tt.types), event.EndSeed))
			wantEqual(t, "prefix", log[:n], logOf(t, source)[:n])
			wantEqual(t, "firstLiveSeq", firstLive(t, child), n)
			h := child.Header()
			wantEqual(t, "header", []any{h.CWD, h.ParentSession, *h.SeedLength}, []any{"/workspace", "source", n})
			if !child.Live() {
				t.Error("the child is not live")
			}
			// The surface that followed the stream is the one that opening folds.
			before := state(t, child)
			if err := child.Detach(ctx); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "surface", state(t, child), before)
		})
	}
}

// Given ids that are taken, unknown or impossible, then the fork is refused; a child that is there already is what is noticed first.
func TestForkIDs(t *testing.T) {
	ctx := context.Background()
	set := newSet(t, memory.New(), quiet())
	create(t, set, session.New{Header: event.Header{ID: "source"}})
	taken := create(t, set, session.New{Header: event.Header{ID: "taken"}})
	tests := []struct {
		name, source string
		fork         session.Fork
		code         session.ForkCode
		of           string
	}{
		{"child is there", "source", session.Fork{Child: "taken"}, session.ForkChildExists, "taken"},
		{"child is there and the boundary bad", "source", session.Fork{Child: "taken", Boundary: at(9)}, session.ForkChildExists, "taken"},
		{"child is there and the source unknown", "nobody", session.Fork{Child: "taken"}, session.ForkChildExists, "taken"},
		{"child is the source", "source", session.Fork{Child: "source"}, session.ForkChildExists, "source"},
		{"unknown source", "nobody", session.Fork{}, session.ForkSourceNotFound, "nobody"},
	}
	for _, cold := range []bool{false, true} {
		if cold {
			if err := taken.Detach(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range tests {
			_, err := set.Fork(ctx, tt.source, tt.fork)
			if e := wantErr[*session.ForkError](t, err); e != nil && (e.Code != tt.code || e.Session != tt.of) {
				t.Errorf("%s: got %s of %s, want %s of %s", tt.name, e.Code, e.Session, tt.code, tt.of)
			}
		}
	}
	_, err := set.Fork(ctx, "source", session.Fork{Child: "a/b"})
	wantCode(t, err, event.HeaderInvalid)
	_, err = set.Fork(ctx, "nobody", session.Fork{})
	wantErr[*eventlog.NotFoundError](t, err)
}

// Given a source with origin, depth and preset, then a fork inherits none of them, and a fork by turns the preset alone.
func TestForkInherits(t *testing.T) {
	depth, preset := int64(2), "x"
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{Header: event.Header{ID: "source", CWD: "/w", Origin: "subagent", DelegationDepth: &depth, AgentPreset: &preset}})
	appendAll(t, s, one()...)
	for name, fork := range map[string]func() (*session.Session, error){
		"fork": func() (*session.Session, error) { return set.Fork(context.Background(), "source", session.Fork{}) },
		"turns": func() (*session.Session, error) {
			return set.ForkTurn(context.Background(), "source", session.TurnFork{})
		},
	} {
		child, err := fork()
		if err != nil {
			t.Fatal(err)
		}
		h := child.Header()
		if h.Origin != "" || h.DelegationDepth != nil || h.CWD != "/w" || h.ParentSession != "source" || (h.AgentPreset != nil) != (name == "turns") {
			t.Errorf("%s: the child has %+v", name, h)
		}
	}
}

// Given a child that somebody else makes while its source is looked at, then it is there already.
func TestForkToAnIDThatIsTakenMeanwhile(t *testing.T) {
	store := logtest.Slow(memory.New())
	set := newSet(t, store, quiet())
	create(t, set, session.New{Header: event.Header{ID: "source"}})
	gate := store.Hold(logtest.Create)
	done := make(chan error)
	go func() {
		_, err := set.Fork(context.Background(), "source", session.Fork{Child: "child"})
		done <- err
	}()
	<-gate.Arrived()
	if _, err := store.Store.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: "child"}}); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	if e := wantErr[*session.ForkError](t, <-done); e != nil && (e.Code != session.ForkChildExists || e.Session != "child") {
		t.Errorf("got %s of %s", e.Code, e.Session)
	}
}

// growing is a store in which somebody appends to a log whenever another one is created.
type growing struct {
	eventlog.Store
	source string
}

func (g growing) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	if info, err := g.Info(ctx, g.source); err == nil {
		late := event.Event{Type: "late", Seq: info.Seq, Data: []byte(`1`)}
		if _, err := g.Append(ctx, eventlog.Batch{Life: eventlog.Life{ID: g.source}, Events: []event.Event{late}}); err != nil {
			return eventlog.Info{}, err
		}
	}
	return g.Store.Create(ctx, c)
}

// Given a source that grows while it is forked, an empty one too, then the child has what was there when the fork was asked for.
func TestForkOfASourceThatGrows(t *testing.T) {
	for _, log := range [][]step{nil, {note("a")}, one()} {
		set := newSet(t, growing{memory.New(), "source"}, quiet())
		s := create(t, set, session.New{Header: event.Header{ID: "source"}})
		appendAll(t, s, log...)
		want := types(logOf(t, s))
		child, err := set.Fork(context.Background(), "source", session.Fork{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "child", types(logOf(t, child)), append(want, event.EndSeed))
		wantEqual(t, "seedLength", *child.Header().SeedLength, int64(len(log)))
	}
}

// Given any seq, then a fork by turns ends with the turn that contains it and what follows before the next turn/start, or is unavailable.
func TestForkTurn(t *testing.T) {
	two := []step{note("0"), turnStart(1), user("a"), turnEnd(1), note("title"), turnStart(2), user("b"), turnEnd(2), note("9")}
	open := append(append([]step{}, two...), turnStart(3), user("c"))
	tests := []struct {
		name   string
		source []step
		at     *int64
		length int64 // of the prefix; −1 is unavailable, −2 no seq
	}{
		{"omitted", two, nil, 9},
		{"before all turns", two, at(0), 5},
		{"inside the first", two, at(2), 5},
		{"at its end", two, at(3), 5},
		{"between turns", two, at(4), 5},
		{"at the start of the second", two, at(5), 9},
		{"after the last", two, at(8), 9},
		{"past the end", two, at(99), 9},
		{"below 0", two, at(-1), -2},
		{"below 0 without turns", nil, at(-3), -2},
		{"omitted with an open turn", open, nil, 9},
		{"inside the open turn", open, at(10), -1},
		{"at the start of the open turn", open, at(9), -1},
		{"past the end with an open turn", open, at(99), 9},
		{"right behind the end with an open turn", open, at(11), 9},
		{"an end without a start behind a turn", []step{turnStart(1), turnEnd(1), turnEnd(1), turnStart(2), turnEnd(2)}, at(0), 3},
		{"before the open turn", open, at(8), 9},
		{"no turns", []step{note("x")}, nil, -1},
		{"no turns, at an event", []step{note("x")}, at(0), -1},
		{"empty", nil, nil, -1},
		{"only an open turn", []step{turnStart(1), user("x")}, at(1), -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, memory.New(), quiet())
			s := create(t, set, session.New{Header: event.Header{ID: "source"}})
			appendAll(t, s, tt.source...)
			child, err := set.ForkTurn(context.Background(), "source", session.TurnFork{AtSeq: tt.at})
			if tt.length < 0 {
				want := session.ForkUnavailable
				if tt.length == -2 {
					want = session.ForkInvalidBoundary
				}
				if e := wantErr[*session.ForkError](t, err); e != nil && e.Code != want {
					t.Errorf("got %s, want %s", e.Code, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "prefix", *child.Header().SeedLength, tt.length)
			wantEqual(t, "log", len(logOf(t, child)), int(tt.length)+1)
		})
	}
}

// Given a source with an open bracket of a plugin, then only the child gets an end-seed.
func TestForkLeavesItsSource(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{Header: event.Header{ID: "source"}})
	appendAll(t, s, step{typ: "compaction/start", data: `{}`})
	child, err := set.Fork(context.Background(), "source", session.Fork{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "source", types(logOf(t, s)), []string{"compaction/start"})
	wantEqual(t, "child", types(logOf(t, child)), []string{"compaction/start", event.EndSeed})
}
