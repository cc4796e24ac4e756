package logtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
)

// RowStore is a store of logs with rows beside them.
type RowStore interface {
	eventlog.Store
	eventlog.RowStore
}

// RunRows checks every law of eventlog.RowStore, as Run does those of eventlog.Store.
func RunRows(t *testing.T, open func(t testing.TB) RowStore) {
	for _, l := range rowLaws {
		t.Run(l.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
					t.Errorf("Close: %v", err)
				}
			})
			l.check(rowKit{kit{TB: t, Store: s}, s})
		})
	}
}

var rowLaws = []struct {
	name  string
	check func(k rowKit)
}{
	{"a log begins without rows", noRows},
	{"rows come out as they went in", rowsVerbatim},
	{"the newer cut wins", newerCut},
	{"a row beyond the log is refused, and the others with it", rowBeyond},
	{"rows come with the log as it is", rowsInfo},
	{"rows of several logs", rowsOfSeveral},
	{"rows belong to one life", rowsOfLife},
	{"the past is kept by seq", pastRows},
	{"dropped rows are gone", rowsDropped},
	{"a cancelled call changes no row", rowsCancelled},
	{"a closed store has no rows", rowsClosed},
	{"of many writers the newest cut stays", raceRows},
}

type rowKit struct {
	kit
	rows eventlog.RowStore
}

func mark(key string, cut, seq int64, data string) eventlog.Row {
	return eventlog.Row{Key: key, Cut: cut, Seq: seq, Data: []byte(data)}
}

func (k rowKit) save(id string, rows ...eventlog.Row) {
	k.Helper()
	if err := k.rows.SaveRows(k.Context(), life(id), rows); err != nil {
		k.Fatalf("SaveRows(%s): %v", id, err)
	}
}

func (k rowKit) past(id string, rows ...eventlog.Row) {
	k.Helper()
	if err := k.rows.SavePast(k.Context(), life(id), rows); err != nil {
		k.Fatalf("SavePast(%s): %v", id, err)
	}
}

func texts(rows []eventlog.Row) string {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b eventlog.Row) int { return cmp.Compare(a.Key, b.Key) })
	text := ""
	for _, r := range rows {
		text += fmt.Sprintf("%q@%d/%d=%q ", r.Key, r.Seq, r.Cut, r.Data)
	}
	return text
}

// has checks the whole of a log's rows.
func (k rowKit) has(id string, want ...eventlog.Row) {
	k.Helper()
	set, err := k.rows.Rows(k.Context(), life(id))
	if err != nil {
		k.Fatalf("Rows(%s): %v", id, err)
	}
	if texts(set.Rows) != texts(want) {
		k.Fatalf("the rows of %s are %s, want %s", id, texts(set.Rows), texts(want))
	}
}

// hasPast checks one answer of PastRow; want nil is none.
func (k rowKit) hasPast(id, key string, seq int64, want *eventlog.Row) {
	k.Helper()
	r, ok, err := k.rows.PastRow(k.Context(), life(id), key, seq)
	if err != nil {
		k.Fatalf("PastRow(%s, %q, %d): %v", id, key, seq, err)
	}
	if ok != (want != nil) || ok && texts([]eventlog.Row{r}) != texts([]eventlog.Row{*want}) {
		k.Fatalf("PastRow(%s, %q, %d) is %s (%v), want %v", id, key, seq, texts([]eventlog.Row{r}), ok, want)
	}
}

func noRows(k rowKit) {
	k.create("a", row(0, "x", "x")...)
	k.has("a")
	k.hasPast("a", "n", 1, nil)
	k.save("a")
	k.past("a")
	k.has("a")
}

func rowsVerbatim(k rowKit) {
	k.create("a", row(0, several("x", 5)...)...)
	rows := []eventlog.Row{
		mark(eventlog.SurfaceKey, 4, 4, `{"surface":[]}`), mark("n", 4, -1, ""), mark("a.b/c_d-e", 4, 2, "\x00\xff not JSON \n"), mark("N", 4, 0, `{"<":1.0}`),
	}
	k.save("a", rows...)
	k.has("a", rows...)
	empty := k.create("b")
	k.save("b", mark("n", -1, -1, "init"))
	k.has("b", mark("n", -1, -1, "init"))
	if empty.Seq != 0 {
		k.Fatalf("a log without events has length %d", empty.Seq)
	}
}

func newerCut(k rowKit) {
	k.create("a", row(0, several("x", 10)...)...)
	k.save("a", mark("n", 5, 5, "five"), mark("m", 5, 3, "three"))
	k.save("a", mark("n", 4, 4, "late"), mark("m", 6, 6, "six"))
	k.has("a", mark("n", 5, 5, "five"), mark("m", 6, 6, "six"))
	// A unit that was raised to another version may have come less far in a later cut.
	k.save("a", mark("n", 9, 1, "another version"))
	k.has("a", mark("n", 9, 1, "another version"), mark("m", 6, 6, "six"))
	k.save("a", mark("n", 9, 9, "same cut"))
	k.has("a", mark("n", 9, 9, "same cut"), mark("m", 6, 6, "six"))
}

func rowBeyond(k rowKit) {
	k.create("a", row(0, "x", "x")...)
	k.save("a", mark("n", 0, 0, "first"))
	for _, bad := range []eventlog.Row{mark("m", 2, 2, ""), mark("m", 2, 0, ""), mark("m", 0, 1, ""), mark("m", 1, -2, ""), mark("m", -2, -2, "")} {
		for name, write := range map[string]func(context.Context, eventlog.Life, []eventlog.Row) error{"SaveRows": k.rows.SaveRows, "SavePast": k.rows.SavePast} {
			wantErr[*eventlog.InvalidError](k.kit, name, write(k.Context(), life("a"), []eventlog.Row{mark("n", 1, 1, "second"), bad}))
		}
	}
	k.has("a", mark("n", 0, 0, "first"))
	k.hasPast("a", "n", 1, nil)
}

func rowsInfo(k rowKit) {
	k.create("a", row(0, "x")...)
	k.save("a", mark("n", 0, 0, "1"))
	k.append("a", row(1, "x", "x")...)
	set, err := k.rows.Rows(k.Context(), life("a"))
	if err != nil {
		k.Fatal(err)
	}
	want := k.info("a")
	if set.Info.Seq != 3 || set.Info.Incarnation != want.Incarnation || set.Info.Position != want.Position || set.Info.Header.ID != "a" {
		k.Fatalf("rows came with %+v, the log is %+v", set.Info, want)
	}
}

func rowsOfSeveral(k rowKit) {
	for _, id := range []string{"a", "b", "c"} {
		k.create(id, row(0, "x")...)
		k.save(id, mark("n", 0, 0, id))
	}
	k.create("none", row(0, "x")...)
	sets, err := k.rows.RowsOf(k.Context(), []string{"c", "missing", "a", "none"})
	if err != nil {
		k.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range sets {
		got[s.Info.Header.ID] = texts(s.Rows)
	}
	if len(sets) != 3 || got["a"] != texts([]eventlog.Row{mark("n", 0, 0, "a")}) || got["c"] != texts([]eventlog.Row{mark("n", 0, 0, "c")}) || got["none"] != "" {
		k.Fatalf("RowsOf: %v", got)
	}
	if sets, err := k.rows.RowsOf(k.Context(), nil); err != nil || len(sets) != 0 {
		k.Fatalf("RowsOf nothing: %v, %v", sets, err)
	}
}

func rowsOfLife(k rowKit) {
	old := k.create("a", row(0, "x", "x")...)
	k.save("a", mark("n", 1, 1, "old"))
	k.past("a", mark("n", 1, 1, "old"))
	k.delete("a")
	wantErr[*eventlog.NotFoundError](k.kit, "Rows", second(k.rows.Rows(k.Context(), life("a"))))
	k.create("a", row(0, "x", "x")...)
	k.has("a")
	k.hasPast("a", "n", 1, nil)
	was := eventlog.Life{ID: "a", Incarnation: old.Incarnation}
	rows := []eventlog.Row{mark("n", 1, 1, "of another life")}
	calls := map[string]func() error{
		"Rows":     func() error { return second(k.rows.Rows(k.Context(), was)) },
		"SaveRows": func() error { return k.rows.SaveRows(k.Context(), was, rows) },
		"SavePast": func() error { return k.rows.SavePast(k.Context(), was, rows) },
		"PastRow":  func() error { _, _, err := k.rows.PastRow(k.Context(), was, "n", 1); return err },
		"DropRows": func() error { return k.rows.DropRows(k.Context(), was) },
	}
	for name, call := range calls {
		wantErr[*eventlog.IncarnationError](k.kit, name, call())
	}
	k.has("a")
}

func second[T any](_ T, err error) error { return err }

func pastRows(k rowKit) {
	k.create("a", row(0, several("x", 50)...)...)
	at := func(seq int64) eventlog.Row { return mark("n", 49, seq, fmt.Sprint(seq)) }
	ten, twenty, thirty := at(10), at(20), at(30)
	k.past("a", thirty, ten)
	k.past("a", twenty, mark("m", 49, 15, "m"))
	k.save("a", mark("n", 49, 40, "latest"))
	k.hasPast("a", "n", 9, nil)
	k.hasPast("a", "n", 10, &ten)
	k.hasPast("a", "n", 19, &ten)
	k.hasPast("a", "n", 20, &twenty)
	k.hasPast("a", "n", 1<<40, &thirty)
	k.hasPast("a", "o", 49, nil)
	again := mark("n", 49, 20, "again")
	k.past("a", again)
	k.hasPast("a", "n", 29, &again)
	k.has("a", mark("n", 49, 40, "latest"))
}

func rowsDropped(k rowKit) {
	k.create("a", row(0, "x", "x")...)
	all := func() {
		k.save("a", mark("n", 1, 1, "n"), mark("m", 1, 1, "m"), mark(eventlog.SurfaceKey, 1, 1, "s"))
		k.past("a", mark("n", 1, 0, "n"), mark("m", 1, 0, "m"))
	}
	all()
	if err := k.rows.DropRows(k.Context(), life("a"), "n", "never there"); err != nil {
		k.Fatal(err)
	}
	m := mark("m", 1, 0, "m")
	k.has("a", mark("m", 1, 1, "m"), mark(eventlog.SurfaceKey, 1, 1, "s"))
	k.hasPast("a", "n", 1, nil)
	k.hasPast("a", "m", 1, &m)
	all()
	if err := k.rows.DropRows(k.Context(), life("a")); err != nil {
		k.Fatal(err)
	}
	k.has("a")
	k.hasPast("a", "m", 1, nil)
	// A cut that was dropped does not stand in the way of an older one.
	k.save("a", mark("n", 0, 0, "older"))
	k.has("a", mark("n", 0, 0, "older"))
}

func rowsCancelled(k rowKit) {
	k.create("a", row(0, "x")...)
	k.save("a", mark("n", 0, 0, "1"))
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	rows := []eventlog.Row{mark("n", 0, -1, "2")}
	for name, err := range map[string]error{
		"Rows": second(k.rows.Rows(ctx, life("a"))), "RowsOf": second(k.rows.RowsOf(ctx, []string{"a"})),
		"SaveRows": k.rows.SaveRows(ctx, life("a"), rows), "SavePast": k.rows.SavePast(ctx, life("a"), rows), "DropRows": k.rows.DropRows(ctx, life("a")),
	} {
		if !errors.Is(err, context.Canceled) {
			k.Fatalf("%s with a context that has ended: %v", name, err)
		}
	}
	k.has("a", mark("n", 0, 0, "1"))
	k.hasPast("a", "n", 0, nil)
}

func rowsClosed(k rowKit) {
	k.create("a", row(0, "x")...)
	if err := k.Close(); err != nil {
		k.Fatal(err)
	}
	for name, err := range map[string]error{
		"Rows": second(k.rows.Rows(k.Context(), life("a"))), "RowsOf": second(k.rows.RowsOf(k.Context(), []string{"a"})),
		"SaveRows": k.rows.SaveRows(k.Context(), life("a"), nil), "SavePast": k.rows.SavePast(k.Context(), life("a"), nil),
		"DropRows": k.rows.DropRows(k.Context(), life("a")),
	} {
		if !errors.Is(err, eventlog.ErrClosed) {
			k.Fatalf("%s of a closed store: %v", name, err)
		}
	}
}

func raceRows(k rowKit) {
	const n = 40
	k.create("a", row(0, several("x", n)...)...)
	var wg sync.WaitGroup
	for cut := range int64(n) {
		wg.Go(func() {
			if err := k.rows.SaveRows(k.Context(), life("a"), []eventlog.Row{mark("n", cut, cut, fmt.Sprint(cut)), mark("m", cut, cut, fmt.Sprint(cut))}); err != nil {
				k.Errorf("SaveRows: %v", err)
			}
		})
	}
	wg.Wait()
	k.has("a", mark("n", n-1, n-1, fmt.Sprint(n-1)), mark("m", n-1, n-1, fmt.Sprint(n-1)))
}
