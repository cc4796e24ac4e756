package logtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// match is what a query means, over the whole log.
func match(log []event.Event, q eventlog.Query) []event.Event {
	var out []event.Event
	for _, e := range log {
		if e.Seq >= q.From && (q.To <= 0 || e.Seq < q.To) && (q.Types == nil || slices.Contains(q.Types, e.Type)) {
			out = append(out, e)
		}
	}
	return out
}

func readRange(k kit) {
	log := row(0, several("x", 20)...)
	k.create("a", log...)
	for _, c := range []struct{ from, to, end int64 }{
		{0, 0, 20}, {0, -5, 20}, {0, 20, 20}, {0, 21, 20}, {0, 1 << 60, 20},
		{5, 6, 6}, {5, 9, 9}, {19, 20, 20}, {19, 0, 20},
		{5, 5, 5}, {9, 5, 5}, {20, 0, 20}, {20, 25, 20}, {300, 0, 20}, {300, 400, 20}, {1 << 60, 0, 20},
	} {
		q := eventlog.Query{Life: life("a"), From: c.from, To: c.to}
		page, err := k.Read(k.Context(), q)
		if err != nil {
			k.Fatalf("Read(%d, %d): %v", c.from, c.to, err)
		}
		if page.End != c.end {
			k.Fatalf("Read(%d, %d): end %d, want %d", c.from, c.to, page.End, c.end)
		}
		k.same(fmt.Sprintf("Read(%d, %d)", c.from, c.to), k.read(q), match(log, q))
	}
	k.create("empty")
	page, err := k.Read(k.Context(), eventlog.Query{Life: life("empty")})
	if err != nil || len(page.Events) != 0 || page.End != 0 || page.Next != 0 {
		k.Fatalf("Read of an empty log: %+v, %v", page, err)
	}
	_, err = k.Read(k.Context(), eventlog.Query{Life: life("none")})
	if e := wantErr[*eventlog.NotFoundError](k, "Read of no log", err); e.ID != "none" {
		k.Fatalf("the error names %q", e.ID)
	}
}

// mixed is a log with frequent, rare and clustered types.
func mixed() []event.Event {
	var types []string
	for i := range 60 {
		typ := "often"
		switch {
		case i%7 == 3:
			typ = "some"
		case i == 31:
			typ = "once"
		case i > 40 && i < 50:
			typ = "cluster"
		}
		types = append(types, typ)
	}
	return row(0, types...)
}

func typeSets() [][]string {
	return [][]string{
		nil, {}, {"often"}, {"some"}, {"once"}, {"cluster"}, {"never"}, {"never", "once"}, {"some", "once", "cluster"},
		{"once", "once"}, {"cluster", "some", "often", "once"}, {"OFTEN"}, {"ofte"}, {"often/"},
	}
}

func readTypes(k kit) {
	log := mixed()
	k.create("a", log[:10]...)
	k.append("a", log[10:11]...)
	k.append("a", log[11:]...)
	for _, types := range typeSets() {
		for _, r := range [][2]int64{{0, 0}, {31, 32}, {32, 0}, {10, 45}, {60, 0}} {
			q := eventlog.Query{Life: life("a"), From: r[0], To: r[1], Types: types}
			k.same(fmt.Sprintf("Read %v of %q", r, types), k.read(q), match(log, q))
		}
	}
}

// Types that are named again, and thousands that no event has, change nothing, in whatever order. Pages of few events join all the same.
func readManyTypes(k kit) {
	log := mixed()
	k.create("a", log...)
	var types []string
	for i := range 3000 {
		types = append(types, fmt.Sprintf("never %d", i%1500), "some", "cluster", "once")
	}
	slices.Reverse(types)
	for _, limit := range []int{0, 1, 5, 11} {
		q := eventlog.Query{Life: life("a"), Types: types, Limit: limit}
		k.same(fmt.Sprintf("pages of %d events by many types", limit), k.read(q), match(log, q))
	}
}

func readPages(k kit) {
	log := mixed()
	for i := range log {
		log[i].Data = json.RawMessage(`"` + strings.Repeat("d", (i*37)%300) + `"`)
	}
	k.create("a", log...)
	for _, types := range typeSets() {
		for _, limit := range []int{0, 1, 2, 3, 59, 1000} {
			for _, bytes := range []int{0, 1, 350, 2000, 1 << 20} {
				for _, r := range [][2]int64{{0, 0}, {7, 44}} {
					q := eventlog.Query{Life: life("a"), From: r[0], To: r[1], Types: types, Limit: limit, MaxBytes: bytes}
					k.same(fmt.Sprintf("pages of %+v", q), k.read(q), match(log, q))
				}
			}
		}
	}
}

// A log of 12 MiB does not come in one page, asked for or not.
func readBounded(k kit) {
	k.create("a")
	for seq := range int64(12) {
		e := ev("x", seq)
		e.Data = json.RawMessage(`"` + strings.Repeat("d", 1<<20-2) + `"`)
		k.append("a", e)
	}
	for _, q := range []eventlog.Query{{}, {Limit: 1 << 30, MaxBytes: 1 << 40}, {Types: []string{"x"}}} {
		q.Life = life("a")
		page, err := k.Read(k.Context(), q)
		if err != nil {
			k.Fatalf("Read: %v", err)
		}
		if len(page.Events) == 12 {
			k.Fatalf("Read(%+v) gave all of 12 MiB in one page", q)
		}
		if got := k.read(q); len(got) != 12 {
			k.Fatalf("Read(%+v) gave %d events, want 12", q, len(got))
		}
	}
	page, err := k.Tail(k.Context(), eventlog.TailQuery{})
	if err != nil || len(page.Events) == 12 {
		k.Fatalf("Tail gave all of 12 MiB in one page (%v)", err)
	}
	if got := k.tail(eventlog.TailQuery{}); len(got) != 12 {
		k.Fatalf("Tail gave %d events, want 12", len(got))
	}
}

func readInvalid(k kit) {
	k.create("a", row(0, "x")...)
	calls := map[string]func() error{
		"Read from -1": func() error {
			_, err := k.Read(k.Context(), eventlog.Query{Life: life("a"), From: -1})
			return err
		},
		"Read of -1 events": func() error {
			_, err := k.Read(k.Context(), eventlog.Query{Life: life("a"), Limit: -1})
			return err
		},
		"Read of -1 bytes": func() error {
			_, err := k.Read(k.Context(), eventlog.Query{Life: life("a"), MaxBytes: -1})
			return err
		},
		"Tail after -1":     func() error { _, err := k.Tail(k.Context(), eventlog.TailQuery{After: -1}); return err },
		"Tail of -1 events": func() error { _, err := k.Tail(k.Context(), eventlog.TailQuery{Limit: -1}); return err },
		"List of -1 logs":   func() error { _, err := k.List(k.Context(), eventlog.ListQuery{Limit: -1}); return err },
		"List at a cursor of nobody": func() error {
			_, err := k.List(k.Context(), eventlog.ListQuery{Cursor: "\x00 ?"})
			return err
		},
	}
	for what, call := range calls {
		wantErr[*eventlog.InvalidError](k, what, call())
	}
}

func scanEnds(k kit) {
	log := row(0, several("x", 5)...)
	k.create("a", log...)
	for _, to := range []int64{0, 5, 100} {
		var got []event.Event
		for e, err := range eventlog.Scan(k.Context(), k.Store, eventlog.Query{Life: life("a"), To: to, Limit: 1}) {
			if err != nil {
				k.Fatalf("Scan: %v", err)
			}
			got = append(got, e)
			// The log grows while it is read: what was asked for is the log as it was.
			k.append("a", ev("late", k.info("a").Seq))
			if len(got) > 50 {
				k.Fatalf("Scan to %d chases the log", to)
			}
		}
		if len(got) < 5 || to != 100 && to != 0 && len(got) != 5 {
			k.Fatalf("Scan to %d gave %d events", to, len(got))
		}
	}
}

// The log is deleted and made again between two pages: the scan ends with an error and mixes nothing.
func scanLife(k kit) {
	k.create("a", row(0, "old", "old", "old")...)
	var err error
	pages := 0
	for e, failed := range eventlog.Scan(k.Context(), k.Store, eventlog.Query{Life: life("a"), Limit: 1}) {
		if err = failed; err != nil {
			break
		}
		if e.Type != "old" {
			k.Fatalf("the scan of one life gave an event of another: %+v", e)
		}
		if pages++; pages == 1 {
			k.delete("a")
			k.create("a", row(0, "new", "new", "new")...)
		}
	}
	wantErr[*eventlog.IncarnationError](k, "the scan", err)
}

func pageLives(k kit) {
	log := row(0, several("x", 10)...)
	k.create("a", log...)
	page, err := k.Read(k.Context(), eventlog.Query{Life: life("a"), Limit: 3})
	if err != nil {
		k.Fatalf("Read: %v", err)
	}
	want := slices.Clone(page.Events)
	k.append("a", row(10, several("y", 10)...)...)
	k.delete("a")
	k.create("a", row(0, several("z", 20)...)...)
	k.same("the page", page.Events, want)
}
