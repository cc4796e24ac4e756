package logtest

import (
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/eventlog"
)

func ids(logs []eventlog.Info) []string {
	var out []string
	for _, l := range logs {
		out = append(out, l.Header.ID)
	}
	return out
}

func (k kit) lists(want ...string) {
	k.Helper()
	if got := ids(k.list(0)); !slices.Equal(got, want) {
		k.Fatalf("listed %q, want %q", got, want)
	}
}

func listOrder(k kit) {
	k.lists()
	k.create("a", row(0, "x")...)
	k.create("b")
	k.create("c", row(0, "x", "x")...)
	k.lists("c", "b", "a")
	k.append("a", row(1, "x")...)
	k.lists("a", "c", "b")
	k.append("a", row(2, "x")...)
	k.append("b", row(0, "x")...)
	k.lists("b", "a", "c")
	k.delete("a")
	k.lists("b", "c")
	k.create("a")
	k.lists("a", "b", "c")
	for _, l := range k.list(0) {
		info := k.info(l.Header.ID)
		if l.Seq != info.Seq || l.Position != info.Position || l.Incarnation != info.Incarnation || l.UpdatedAt != info.UpdatedAt {
			k.Fatalf("listed %+v, Info says %+v", l, info)
		}
	}
}

func listPages(k kit) {
	var want []string
	for i := range 11 {
		id := fmt.Sprint("s", i)
		k.create(id)
		want = append(want, id)
	}
	slices.Reverse(want)
	for _, limit := range []int{0, 1, 2, 5, 10, 11, 12, 100_000} {
		if got := ids(k.list(limit)); !slices.Equal(got, want) {
			k.Fatalf("listed by %d: %q, want %q", limit, got, want)
		}
	}
}

func listChanges(k kit) {
	for i := range 10 {
		k.create(fmt.Sprint("s", i))
	}
	seen := map[string]int{}
	q := eventlog.ListQuery{Limit: 2}
	for step := 0; ; step++ {
		page, err := k.List(k.Context(), q)
		if err != nil {
			k.Fatalf("List: %v", err)
		}
		for _, id := range ids(page.Logs) {
			seen[id]++
		}
		if page.Cursor == "" {
			break
		}
		q.Cursor = page.Cursor
		switch step {
		case 0: // one that was given, one that was not, and the one that the cursor may stand on
			k.append("s9", row(0, "x")...)
			k.append("s0", row(0, "x")...)
			k.append(page.Logs[len(page.Logs)-1].Header.ID, row(k.info(page.Logs[len(page.Logs)-1].Header.ID).Seq, "x")...)
		case 1:
			k.delete(page.Logs[len(page.Logs)-1].Header.ID)
			k.create("new")
		}
	}
	for id, n := range seen {
		if n > 1 {
			k.Fatalf("%s was listed %d times", id, n)
		}
	}
	for i := 1; i < 9; i++ {
		if id := fmt.Sprint("s", i); seen[id] != 1 {
			k.Fatalf("%s was listed %d times, want once", id, seen[id])
		}
	}
}
