package logtest

import (
	"context"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// grouper is the store, where it takes groups; a law that needs one holds for all others.
func (k kit) grouper() (eventlog.Grouper, bool) {
	g, ok := k.Store.(eventlog.Grouper)
	if !ok {
		k.Log("not a store that takes groups")
	}
	return g, ok
}

func groupCommits(k kit) {
	g, ok := k.grouper()
	if !ok {
		return
	}
	k.create("a", row(0, "x")...)
	k.create("b")
	last := k.info("b").Position
	batches := []eventlog.Batch{
		{Life: life("a"), Events: row(1, "x", "y"), Key: "k", Digest: "d"},
		{Life: life("a"), Events: row(3, "y")},
		{Life: life("a"), Events: row(4, "x", "x", "x"), Key: "l", Digest: "e", Answer: "done"},
	}
	commits, err := g.AppendGroup(k.Context(), batches)
	if err != nil || len(commits) != len(batches) {
		k.Fatalf("AppendGroup: %+v, %v", commits, err)
	}
	next := int64(1)
	var want []event.Event
	for i, c := range commits {
		n := int64(len(batches[i].Events))
		if c.First != next || c.Seq != next+n || c.Position != last+n || c.Time < 1 || c.Repeated {
			k.Fatalf("commit %d is %+v; it has %d events from %d, after position %d", i, c, n, next, last)
		}
		next, last = c.Seq, c.Position
		want = append(want, batches[i].Events...)
	}
	k.holds("a", append(row(0, "x"), want...))
	if info := k.info("a"); info.Seq != next || info.Position != last || info.UpdatedAt != commits[2].Time {
		k.Fatalf("info %+v after %+v", info, commits)
	}
	for i, key := range []string{0: "k", 2: "l"} {
		if key == "" {
			continue
		}
		again, err := k.Append(k.Context(), batches[i])
		if want := commits[i]; err != nil || !again.Repeated || again.First != want.First || again.Seq != want.Seq || again.Position != want.Position {
			k.Fatalf("key %s: %+v, %v, want %+v repeated", key, again, err, want)
		}
	}
	if record, ok, err := k.Lookup(k.Context(), life("a"), "l"); err != nil || !ok || record.Answer != "done" {
		k.Fatalf("key l: %+v, %v, %v", record, ok, err)
	}
	if types := k.types("a", "y"); !slices.Equal(types, []int64{2, 3}) {
		k.Fatalf("events of type y at %v", types)
	}
}

// types gives the seqs of the events of a type.
func (k kit) types(id, typ string) (seqs []int64) {
	k.Helper()
	for e, err := range eventlog.Scan(k.Context(), k.Store, eventlog.Query{Life: life(id), Types: []string{typ}}) {
		if err != nil {
			k.Fatalf("Scan: %v", err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func is[E error](err error) bool {
	_, ok := err.(E)
	return ok
}

func groupRefused(k kit) {
	g, ok := k.grouper()
	if !ok {
		return
	}
	k.create("a", row(0, "x")...)
	if _, err := k.Append(k.Context(), keyed(1, "known", "d", "x")); err != nil {
		k.Fatalf("Append: %v", err)
	}
	before := k.info("a")
	good := func(seq int64) eventlog.Batch { return eventlog.Batch{Life: life("a"), Events: row(seq, "y")} }
	with := func(b eventlog.Batch, key, digest string) eventlog.Batch { b.Key, b.Digest = key, digest; return b }
	for what, c := range map[string]struct {
		index   int
		batches []eventlog.Batch
		err     func(error) bool
	}{
		"another seq":          {0, []eventlog.Batch{good(1), good(2)}, is[*eventlog.SeqConflictError]},
		"a gap":                {1, []eventlog.Batch{good(2), good(4)}, is[*eventlog.InvalidError]},
		"no events":            {1, []eventlog.Batch{good(2), {Life: life("a")}}, is[*eventlog.InvalidError]},
		"another log":          {1, []eventlog.Batch{good(2), {Life: life("b"), Events: row(3, "y")}}, is[*eventlog.InvalidError]},
		"no log":               {0, []eventlog.Batch{{Life: life("b"), Events: row(0, "y")}}, is[*eventlog.NotFoundError]},
		"another life":         {0, []eventlog.Batch{{Life: eventlog.Life{ID: "a", Incarnation: "other"}, Events: row(2, "y")}}, is[*eventlog.IncarnationError]},
		"a known key":          {2, []eventlog.Batch{good(2), good(3), with(good(4), "known", "d")}, func(err error) bool { return err == eventlog.ErrKeyKnown }},
		"a key of another":     {1, []eventlog.Batch{good(2), with(good(3), "known", "other")}, is[*eventlog.KeyReusedError]},
		"one key twice":        {2, []eventlog.Batch{with(good(2), "k", "d"), good(3), with(good(4), "k", "d")}, func(err error) bool { return err == eventlog.ErrKeyKnown }},
		"a gap within a batch": {1, []eventlog.Batch{good(2), {Life: life("a"), Events: []event.Event{ev("x", 3), ev("x", 5)}}}, is[*eventlog.InvalidError]},
	} {
		_, err := g.AppendGroup(k.Context(), c.batches)
		e := wantErr[*eventlog.GroupError](k, what, err)
		if e.Index != c.index || !c.err(e.Err) {
			k.Fatalf("%s: batch %d, %v", what, e.Index, e.Err)
		}
	}
	_, err := g.AppendGroup(k.Context(), nil)
	wantErr[*eventlog.InvalidError](k, "no batches", err)
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	if _, err := g.AppendGroup(ctx, []eventlog.Batch{good(2)}); err != context.Canceled {
		k.Fatalf("cancelled: %v", err)
	}
	k.holds("a", append(row(0, "x"), row(1, "x")...))
	if after := k.info("a"); after.Seq != before.Seq || after.Position != before.Position || after.UpdatedAt != before.UpdatedAt {
		k.Fatalf("a refused group moved the log: %+v, was %+v", after, before)
	}
	if _, err := g.AppendGroup(k.Context(), []eventlog.Batch{with(good(2), "k", "d"), good(3)}); err != nil {
		k.Fatalf("after refusals: %v", err)
	}
}
