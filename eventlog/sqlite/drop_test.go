package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Given rows that are large, when all of a log, or those of its keys, are dropped, then no change has more than some MiB of it to do, and in the end none is left.
func TestDroppingRowsIsBoundedInBytes(t *testing.T) {
	for name, keys := range map[string][]string{"all": nil, "named": {"k0", "k1", "k2", "k3", "nobody's"}} {
		t.Run(name, func(t *testing.T) {
			s := reopen(t, memoryDir(t), Options{Durability: Relaxed})
			largeRows(t, s, "a")
			d := dropping{life: eventlog.Life{ID: "a"}, keys: keys}
			if keys == nil {
				d.all, d.keys = true, []string{""}
			}
			for slices := 0; len(d.keys) > 0; slices++ {
				if slices > 20 {
					t.Fatal("it does not end")
				}
				if err := s.change(nowhere, 0, func(w *writer) error {
					l, err := w.head("a")
					if err != nil {
						return err
					}
					before := there(t, w, "rows", l.n) + there(t, w, "past", l.n)
					if d, err = d.slice(w, dropRoom{most: s.dropSlice, bytes: sweepBytes}); err != nil {
						return err
					}
					after := there(t, w, "rows", l.n) + there(t, w, "past", l.n)
					if gone := before - after; gone > sweepBytes>>19 || gone < sweepBytes>>19 && len(d.keys) > 0 {
						t.Errorf("%d rows of 512 KiB go at once, and %d are left", gone, after)
					}
					if len(d.keys) == 0 && after != 0 {
						t.Errorf("%d are left in the end", after)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Given a log whose rows are large, when it is swept, then no commit has to sweep more than some MiB of each kind of them.
func TestASweepOfRowsIsBoundedInBytes(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{Durability: Relaxed})
	largeRows(t, s, "a")
	for done := false; !done; {
		if err := s.change(nowhere, 0, func(w *writer) error {
			l, err := w.head("a")
			if err != nil {
				return err
			}
			before := there(t, w, "rows", l.n) + there(t, w, "past", l.n)
			done, err = w.sweepLog(l.n, sweepAlone)
			if gone := before - there(t, w, "rows", l.n) - there(t, w, "past", l.n); gone > 2*sweepBytes>>19 || gone == 0 && !done {
				t.Errorf("%d rows of 512 KiB go at once", gone)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// largeRows makes a log with rows of 512 KiB: four keys with nine past ones each.
func largeRows(t *testing.T, s *Store, id string) {
	t.Helper()
	create(t, s, id, row(0, 9)...)
	for k := range 4 {
		for seq := range int64(9) {
			rows := []eventlog.Row{{Key: fmt.Sprint("k", k), Cut: 8, Seq: seq, Data: make([]byte, 1<<19)}}
			if err := errors.Join(s.SaveRows(nowhere, eventlog.Life{ID: id}, rows), s.SavePast(nowhere, eventlog.Life{ID: id}, rows)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Given any rows, when some are dropped in slices of any size while others are saved in between, then what was there at the beginning cannot be read in the end, what was saved meanwhile is there
// as it was last saved or not at all, and rows of other keys and logs are as they were.
func TestDroppingRowsAmongOtherChanges(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{Durability: Relaxed})
	const length = 12
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		m := rowModel{t: t, s: s, rows: map[rowPlace]string{}, since: map[rowPlace]bool{}}
		for _, id := range []string{"a", "b"} {
			life := eventlog.Life{ID: fmt.Sprint(id, round)}
			if _, err := s.Create(nowhere, eventlog.Creation{Header: event.Header{ID: life.ID}, Events: pull(row(0, length))}); err != nil {
				t.Fatal(err)
			}
			m.lives = append(m.lives, life)
		}
		for range rapid.IntRange(0, 40).Draw(t, "rows before") {
			m.save(length)
		}
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom(modelKeys), 0, len(modelKeys), rapid.ID).Draw(t, "keys")
		d := dropping{life: m.lives[0], keys: keys}
		if len(keys) == 0 {
			d.all, d.keys, keys = true, []string{""}, modelKeys
		}
		clear(m.since)
		for slices := 0; len(d.keys) > 0; slices++ {
			if slices > 500 {
				t.Fatal("it does not end")
			}
			room := dropRoom{most: rapid.IntRange(1, 5).Draw(t, "records"), bytes: rapid.IntRange(0, 100).Draw(t, "bytes")}
			if err := s.change(nowhere, 0, func(w *writer) (err error) {
				d, err = d.slice(w, room)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 3).Draw(t, "rows between") {
				m.save(length)
			}
		}
		m.check(length, m.lives[0].ID, keys)
	})
}

var modelKeys = []string{eventlog.SurfaceKey, "a", "b", "ba", "é"}

// rowPlace is where a row stands; seq is −2 for the latest of a key.
type rowPlace struct {
	id, key string
	seq     int64
}

type rowModel struct {
	t     *rapid.T
	s     *Store
	lives []eventlog.Life
	// rows are what was last saved, since which of them since the drop began.
	rows  map[rowPlace]string
	since map[rowPlace]bool
	n     int
}

// save saves a row, a latest one or a past one, as of any seq: who folds the past saves rows that are far behind.
func (m *rowModel) save(length int64) {
	life := m.lives[rapid.IntRange(0, 1).Draw(m.t, "log")]
	m.n++
	r := eventlog.Row{Key: rapid.SampledFrom(modelKeys).Draw(m.t, "key"), Cut: length - 1, Seq: rapid.Int64Range(-1, length-1).Draw(m.t, "seq"), Data: fmt.Appendf(nil, "%050d", m.n)}
	place, save := rowPlace{life.ID, r.Key, noSeq}, m.s.SaveRows
	if rapid.Bool().Draw(m.t, "past") {
		place.seq, save = r.Seq, m.s.SavePast
	}
	if err := save(nowhere, life, []eventlog.Row{r}); err != nil {
		m.t.Fatal(err)
	}
	m.rows[place], m.since[place] = string(r.Data), true
}

func (m *rowModel) check(length int64, dropped string, keys []string) {
	found := map[rowPlace]string{}
	for _, life := range m.lives {
		set, err := m.s.Rows(nowhere, life)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, r := range set.Rows {
			found[rowPlace{life.ID, r.Key, noSeq}] = string(r.Data)
		}
		for _, key := range modelKeys {
			for seq := range length + 1 {
				r, ok, err := m.s.PastRow(nowhere, life, key, seq-1)
				if err != nil {
					m.t.Fatal(err)
				}
				if ok {
					found[rowPlace{life.ID, key, r.Seq}] = string(r.Data)
				}
			}
		}
	}
	for place, data := range found {
		if m.rows[place] != data {
			m.t.Fatalf("%+v is %s, and was last saved as %s", place, data, m.rows[place])
		}
		if place.id == dropped && slices.Contains(keys, place.key) && !m.since[place] {
			m.t.Fatalf("%+v was dropped, and can be read", place)
		}
	}
	for _, place := range slices.Collect(maps.Keys(m.rows)) {
		if _, ok := found[place]; !ok && !(place.id == dropped && slices.Contains(keys, place.key)) {
			m.t.Fatalf("%+v is gone, and nobody dropped it", place)
		}
	}
}

// Given a drop that takes several changes, when the log is deleted between two of them, or also made anew, then the drop says so, and the rows of the new life stay.
func TestALogIsDeletedWhileItsRowsAreDropped(t *testing.T) {
	for _, anew := range []bool{false, true} {
		s := reopen(t, memoryDir(t), Options{Durability: Relaxed})
		life := eventlog.Life{ID: "a"} // whichever there is
		create(t, s, "a", row(0, 3)...)
		rows := []eventlog.Row{{Key: "k", Cut: 2, Seq: 1}, {Key: "l", Cut: 2, Seq: 1}}
		if err := s.SaveRows(nowhere, life, rows); err != nil {
			t.Fatal(err)
		}
		d := dropping{life: life, keys: []string{"k", "l"}}
		slice := func() error {
			return s.change(nowhere, 0, func(w *writer) (err error) {
				d, err = d.slice(w, dropRoom{most: 1})
				return err
			})
		}
		if err := slice(); err != nil || len(d.keys) != 1 {
			t.Fatalf("the first slice: %v, %v", d.keys, err)
		}
		if err := s.Delete(nowhere, life); err != nil {
			t.Fatal(err)
		}
		if !anew {
			as[*eventlog.NotFoundError](t, "a slice after the log was deleted", slice())
			continue
		}
		create(t, s, "a", row(0, 3)...)
		if err := s.SaveRows(nowhere, life, rows); err != nil {
			t.Fatal(err)
		}
		as[*eventlog.IncarnationError](t, "a slice after the log was made anew", slice())
		if set, err := s.Rows(nowhere, life); err != nil || len(set.Rows) != 2 {
			t.Errorf("the new life has %d rows, %v", len(set.Rows), err)
		}
	}
}

// Given a drop that takes several changes, when its caller leaves, then it ends between two of them.
func TestADropOfRowsThatIsGivenUp(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{Durability: Relaxed, dropSlice: 1})
	create(t, s, "a", row(0, 3)...)
	life := eventlog.Life{ID: "a"}
	for seq := range int64(3) {
		if err := s.SavePast(nowhere, life, []eventlog.Row{{Key: "k", Cut: 2, Seq: seq}}); err != nil {
			t.Fatal(err)
		}
	}
	there := func(seq int64) bool {
		r, ok, err := s.PastRow(nowhere, life, "k", seq)
		if err != nil {
			t.Fatal(err)
		}
		return ok && r.Seq == seq
	}
	if err := s.DropRows(&leaving{Context: nowhere, after: 3}, life, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a drop whose caller has left: %v", err)
	}
	if there(0) || !there(1) || !there(2) {
		t.Errorf("after two slices of one row the past rows are there: %v, %v, %v", there(0), there(1), there(2))
	}
	if err := s.DropRows(nowhere, life); err != nil || there(2) {
		t.Errorf("after a drop that went through: %v, there: %v", err, there(2))
	}
}

// leaving is a context that has ended when it is asked for more than so many times.
type leaving struct {
	context.Context
	after int
}

func (c *leaving) Err() error {
	if c.after--; c.after < 0 {
		return context.Canceled
	}
	return nil
}
