package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Given more keys than must be kept, then those that are old and not among the last 2,000 of their log go, a part at a time, and no others.
func TestOldKeysAreForgotten(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	create(t, s, "a")
	create(t, s, "b")
	now := time.Now().UnixMilli()
	day := paging.KeyTime.Milliseconds()
	fill := func(id string, n int, at int64) {
		t.Helper()
		err := s.change(nowhere, 0, func(w *writer) error {
			l, err := w.head(id)
			if err != nil {
				return err
			}
			for i := range n {
				w.position++
				if err := run(w.st.addKey, l.n, blob(fmt.Sprint(at, "-", i)), blob("d"), int64(0), int64(1), w.position, at, []byte(nil)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	forget := func(id string) {
		t.Helper()
		err := s.change(nowhere, 0, func(w *writer) error {
			l, err := w.head(id)
			if err != nil {
				return err
			}
			return w.forget(l.n)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	known := func(id string, at int64, i int) bool {
		t.Helper()
		_, ok, err := s.Lookup(nowhere, eventlog.Life{ID: id}, fmt.Sprint(at, "-", i))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	old, fresh := now-2*day, now-day/2
	fill("a", 2700, old)
	fill("a", 300, fresh)
	fill("b", 2000, old)
	forget("a")
	if known("a", old, 2*forgetEvery-1) || !known("a", old, 2*forgetEvery) {
		t.Error("not the oldest, or not as many as there should be")
	}
	for range 4 {
		forget("a")
		forget("b")
	}
	if known("a", old, 999) || !known("a", old, 1000) || !known("a", fresh, 0) || !known("b", old, 0) {
		t.Errorf("known are %v, %v, %v, %v", known("a", old, 999), known("a", old, 1000), known("a", fresh, 0), known("b", old, 0))
	}
	fill("b", 1, fresh)
	forget("b")
	if known("b", old, 0) || !known("b", old, 1) {
		t.Error("beyond the last 2,000 one is forgotten")
	}

	// Those that stand alone have no place in the log that tells which came first.
	create(t, s, "c")
	if err := s.change(nowhere, 0, func(w *writer) error {
		l, err := w.head("c")
		for i := range 2400 {
			if err == nil {
				err = run(w.st.addKey, l.n, blob(fmt.Sprint("0-", i)), blob("d"), int64(0), int64(0), l.position, old+int64(i), []byte(nil))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	forget("c")
	if known("c", 0, 399) || !known("c", 0, 400) {
		t.Errorf("of 2,400 that stand alone the 400th is known: %v, and the one after it: %v", known("c", 0, 399), known("c", 0, 400))
	}
}

// Given keys that come with appends, then now and then some are forgotten without anybody asking.
func TestAppendsForgetOldKeys(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{Durability: Relaxed})
	create(t, s, "a")
	err := s.change(nowhere, 0, func(w *writer) error {
		l, err := w.head("a")
		for i := 0; err == nil && i < 2500; i++ {
			w.position++
			err = run(w.st.addKey, l.n, blob(fmt.Sprint("old-", i)), blob("d"), int64(0), int64(1), w.position, int64(1))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20_000 { // It is up to chance when: that it does not happen until then has a chance of e^-78.
		b := eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(int64(n), 1), Key: fmt.Sprint(n), Digest: "d"}
		if _, err := s.Append(nowhere, b); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Lookup(nowhere, eventlog.Life{ID: "a"}, "old-0"); err != nil || !ok {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("nothing was forgotten")
}
