package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// large fills a log with keys whose answers are large, and with events that are.
func large(t *testing.T, s *Store, id string) {
	t.Helper()
	create(t, s, id)
	for i := range 20 {
		events := row(int64(i), 1)
		events[0].Data = []byte(`"` + strings.Repeat("x", 1<<19) + `"`)
		if _, err := s.Append(t.Context(), eventlog.Batch{Life: eventlog.Life{ID: id}, Events: events, Key: fmt.Sprint(i), Digest: "d", Answer: strings.Repeat("x", 1<<19)}); err != nil {
			t.Fatal(err)
		}
	}
}

// there counts what there is of a log.
func there(t *testing.T, w *writer, table string, log int64) int64 {
	t.Helper()
	n, err := w.c.number(fmt.Sprintf("SELECT count(*) FROM %s WHERE log = %d", table, log))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Given a log whose events and answers are large, when it is swept, then no commit has to sweep more than some MiB of it, and in the end nothing is left.
func TestASweepIsBoundedInBytes(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	large(t, s, "a")
	done := false
	for slices := 0; !done; slices++ {
		if slices > 20 {
			t.Fatal("it does not end")
		}
		if err := s.change(nowhere, 0, func(w *writer) error {
			l, err := w.head("a")
			if err != nil {
				return err
			}
			before := there(t, w, "keys", l.n) + there(t, w, "events", l.n)
			if done, err = w.sweepLog(l.n, sweepAlone); err != nil {
				return err
			}
			if after := there(t, w, "keys", l.n) + there(t, w, "events", l.n); before-after > 2*sweepBytes>>19 || done != (after == 0 && before-after < sweepBytes>>19) {
				t.Errorf("%d records of 512 KiB go at once, %d are left, and it is done: %v", before-after, after, done)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Given old keys with large answers, then only some MiB of them are forgotten at a time.
func TestForgettingIsBoundedInBytes(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	large(t, s, "a")
	for i := range paging.Keys {
		mustKey(t, s, "a", fmt.Sprint("fresh", i))
	}
	if err := s.change(nowhere, 0, func(w *writer) error {
		l, err := w.head("a")
		if err != nil {
			return err
		}
		old := time.Now().Add(-2 * paging.KeyTime).UnixMilli()
		if err := w.c.exec(fmt.Sprintf("UPDATE keys SET time = %d WHERE answer IS NOT NULL", old)); err != nil {
			return err
		}
		for want := int64(20); want > 0; {
			if err := w.forget(l.n); err != nil {
				return err
			}
			have := there(t, w, "keys", l.n) - int64(paging.Keys)
			if gone := want - have; gone < 1 || gone > 2*forgetEvery*forgetFor>>19 {
				t.Fatalf("%d of 512 KiB were forgotten at once, and %d are left", gone, have)
			}
			want = have
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// mustKey adds a key that stands alone.
func mustKey(t *testing.T, s *Store, id, key string) {
	t.Helper()
	if _, err := s.Append(t.Context(), eventlog.Batch{Life: eventlog.Life{ID: id}, Key: key, Digest: "d"}); err != nil {
		t.Fatal(err)
	}
}
