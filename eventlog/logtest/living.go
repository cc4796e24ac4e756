package logtest

import (
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func deleted(k kit) {
	k.create("a", row(0, "x")...)
	k.create("b", row(0, "y")...)
	k.delete("a")
	calls := map[string]func() error{
		"Info": func() error { _, err := k.Info(k.Context(), "a"); return err },
		"Read": func() error { _, err := k.Read(k.Context(), eventlog.Query{Life: life("a")}); return err },
		"Append": func() error {
			_, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: row(1, "x")})
			return err
		},
		"Lookup": func() error { _, _, err := k.Lookup(k.Context(), life("a"), "k"); return err },
		"Delete": func() error { return k.Delete(k.Context(), life("a")) },
	}
	for name, call := range calls {
		if e := wantErr[*eventlog.NotFoundError](k, name, call()); e.ID != "a" {
			k.Fatalf("%s: the error names %q", name, e.ID)
		}
	}
	k.lists("b")
	k.holds("b", row(0, "y"))
}

func secondLife(k kit) {
	incarnations := map[string]bool{}
	for range 5 {
		info := k.create("a")
		if incarnations[info.Incarnation] {
			k.Fatalf("incarnation %s was given before", info.Incarnation)
		}
		incarnations[info.Incarnation] = true
		c, err := k.Append(k.Context(), keyed(0, "k", "d", "x"))
		if err != nil || c.First != 0 || c.Repeated {
			k.Fatalf("the first append of a life: %+v, %v", c, err)
		}
		k.holds("a", row(0, "x"))
		k.same("the type", k.read(eventlog.Query{Life: life("a"), Types: []string{"x"}}), row(0, "x"))
		k.delete("a")
	}
}

func wrongLife(k kit) {
	old := k.create("a", row(0, "x")...).Incarnation
	k.delete("a")
	now := k.create("a", row(0, "y")...).Incarnation
	wrong := eventlog.Life{ID: "a", Incarnation: old}
	calls := map[string]func() error{
		"Append": func() error {
			_, err := k.Append(k.Context(), eventlog.Batch{Life: wrong, Events: row(1, "x")})
			return err
		},
		"Read":   func() error { _, err := k.Read(k.Context(), eventlog.Query{Life: wrong}); return err },
		"Lookup": func() error { _, _, err := k.Lookup(k.Context(), wrong, "k"); return err },
		"Delete": func() error { return k.Delete(k.Context(), wrong) },
	}
	for name, call := range calls {
		e := wantErr[*eventlog.IncarnationError](k, name, call())
		if e.ID != "a" || e.Have != now || e.Want != old {
			k.Fatalf("%s: %+v, want a, have %s, want %s", name, e, now, old)
		}
	}
	k.holds("a", row(0, "y"))

	right := eventlog.Life{ID: "a", Incarnation: now}
	if _, err := k.Append(k.Context(), eventlog.Batch{Life: right, Events: row(1, "y")}); err != nil {
		k.Fatalf("Append to the right life: %v", err)
	}
	k.same("the right life", k.read(eventlog.Query{Life: right}), row(0, "y", "y"))
	if page, err := k.Read(k.Context(), eventlog.Query{Life: life("a")}); err != nil || page.Incarnation != now {
		k.Fatalf("the page is of life %s (%v), want %s", page.Incarnation, err, now)
	}
	if err := k.Delete(k.Context(), right); err != nil {
		k.Fatalf("Delete of the right life: %v", err)
	}
}

func closed(k kit) {
	k.create("a", row(0, "x")...)
	if err := k.Close(); err != nil {
		k.Fatalf("Close: %v", err)
	}
	calls := map[string]func() error{
		"Create": func() error {
			_, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "b"}})
			return err
		},
		"Append": func() error {
			_, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: row(1, "x")})
			return err
		},
		"Info":   func() error { _, err := k.Info(k.Context(), "a"); return err },
		"List":   func() error { _, err := k.List(k.Context(), eventlog.ListQuery{}); return err },
		"Read":   func() error { _, err := k.Read(k.Context(), eventlog.Query{Life: life("a")}); return err },
		"Tail":   func() error { _, err := k.Tail(k.Context(), eventlog.TailQuery{}); return err },
		"Lookup": func() error { _, _, err := k.Lookup(k.Context(), life("a"), "k"); return err },
		"Delete": func() error { return k.Delete(k.Context(), life("a")) },
		"Close":  k.Close,
	}
	for name, call := range calls {
		wantIs(k, name, call(), eventlog.ErrClosed)
	}
}
