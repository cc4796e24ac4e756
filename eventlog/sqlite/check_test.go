package sqlite

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func checked(t testing.TB, s *Store) Report {
	t.Helper()
	report, err := s.Check(t.Context(), CheckOptions{Pages: true})
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return report
}

func clean(t testing.TB, s *Store) Report {
	t.Helper()
	report := checked(t, s)
	for _, p := range report.Problems {
		t.Errorf("%v", p)
	}
	return report
}

// stocked is a store with something of everything.
func stocked(t testing.TB) *Store {
	t.Helper()
	s := reopen(t, memoryDir(t), Options{})
	create(t, s, "a", row(0, 10)...)
	create(t, s, "staged", row(0, 2100)...)
	create(t, s, "empty")
	create(t, s, "gone", row(0, 10)...)
	if _, err := s.Append(t.Context(), eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(10, 2), Key: "k", Digest: "d"}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, "staged", row(2100, 3)...)
	rows := []eventlog.Row{{Key: "n", Cut: 3, Seq: 3, Data: []byte("1")}, {Key: "", Cut: 3, Seq: 3, Data: []byte("2")}}
	if err := errors.Join(s.SaveRows(t.Context(), eventlog.Life{ID: "a"}, rows), s.SavePast(t.Context(), eventlog.Life{ID: "a"}, rows)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), eventlog.Life{ID: "gone"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestACleanStoreChecksClean(t *testing.T) {
	s := stocked(t)
	var steps []int64
	report, err := s.Check(t.Context(), CheckOptions{Pages: true, Progress: func(done, total int64) {
		if total != 3 {
			t.Errorf("%d of %d", done, total)
		}
		steps = append(steps, done)
	}})
	if err != nil || len(report.Problems) != 0 || report.More != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if report.Logs != 3 || report.Events != 12+2103 || report.Rows != 4 || !slices.Equal(steps, []int64{1, 2, 3}) {
		t.Errorf("%+v, steps %v", report, steps)
	}
}

func TestEachProblemIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		want []Problem
	}{
		"a changed event":      {"UPDATE events SET data = x'31' WHERE log = 1 AND seq = 4", []Problem{{Code: DamagedEvent, ID: "a", Seq: 4}}},
		"a lost event":         {"DELETE FROM events WHERE log = 1 AND seq IN (4, 5)", []Problem{{Code: MissingEvent, ID: "a", Seq: 4}}},
		"a lost end":           {"DELETE FROM events WHERE log = 1 AND seq > 9", []Problem{{Code: MissingEvent, ID: "a", Seq: 10}}},
		"a lost page":          {"DELETE FROM events WHERE log = 2 AND seq BETWEEN 500 AND 1700", []Problem{{Code: MissingEvent, ID: "staged", Seq: 500}}},
		"a lost log":           {"DELETE FROM logs WHERE n = 1", []Problem{{Code: Orphan, Seq: -1}, {Code: Orphan, Seq: -1}, {Code: Orphan, Seq: -1}, {Code: Orphan, Seq: -1}, {Code: Orphan, Seq: -1}}},
		"a lost head":          {"DELETE FROM heads WHERE log = 1", []Problem{{Code: DamagedLog, ID: "a", Seq: -1}}},
		"a changed head":       {"UPDATE heads SET position = position + 1000 WHERE log = 1", []Problem{{Code: DamagedLog, ID: "a", Seq: -1}}},
		"a changed header":     {"UPDATE logs SET header = x'7b7d' WHERE n = 3", []Problem{{Code: DamagedLog, ID: "empty", Seq: -1}}},
		"a changed row":        {"UPDATE rows SET data = x'31' WHERE key = ''", []Problem{{Code: DamagedRow, ID: "a", Seq: -1}}},
		"a changed past":       {"UPDATE past SET seq = 2 WHERE key = 'n'", []Problem{{Code: DamagedRow, ID: "a", Seq: -1}}},
		"another type":         {"UPDATE types SET name = x'78' WHERE n = 1", nil},
		"events of nobody":     {"INSERT INTO events SELECT 100000, 77, 0, type, time, data, extra, sum FROM events WHERE log = 1 AND seq = 0", []Problem{{Code: Orphan, Seq: -1}}},
		"events beyond":        {"INSERT INTO events SELECT 100000, 1, 12, type, time, data, extra, sum FROM events WHERE log = 1 AND seq = 0", []Problem{{Code: EventBeyond, ID: "a", Seq: 12}}},
		"no JSON, but as sent": {"", []Problem{{Code: DamagedEvent, ID: "odd", Seq: 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := stocked(t)
			swept(t, s)
			if c.sql == "" {
				// The store does not look into what it is given; acceptance does.
				create(t, s, "odd", event.Event{Type: "t", Data: []byte("{")})
			} else if err := s.change(nowhere, 0, func(w *writer) error { return w.c.exec(c.sql) }); err != nil {
				t.Fatal(err)
			}
			report := checked(t, s)
			if c.want == nil {
				if len(report.Problems) < 100 {
					t.Errorf("%+v", report.Problems)
				}
				return
			}
			if len(report.Problems) != len(c.want) {
				t.Fatalf("%+v", report.Problems)
			}
			for i, p := range report.Problems {
				if p.Detail == "" || p.String() == "" {
					t.Errorf("%+v says nothing", p)
				}
				if p.Detail = ""; p != c.want[i] {
					t.Errorf("%+v, want %+v", p, c.want[i])
				}
			}
		})
	}
}

func TestALogThatChangesWhileItIsCheckedIsNoProblem(t *testing.T) {
	s := stocked(t)
	n := int64(2103)
	report, err := s.Check(t.Context(), CheckOptions{Progress: func(done, _ int64) {
		mustAdd(t, s, "staged", row(n, 1)...)
		n++
		if done == 2 {
			if err := s.Delete(t.Context(), eventlog.Life{ID: "empty"}); err != nil {
				t.Error(err)
			}
			create(t, s, "new", row(0, 5)...)
		}
	}})
	if err != nil || len(report.Problems) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Check(ctx, CheckOptions{Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Check: %v", err)
	}
}

// Rotten pages are a problem in the report, not the end of it.
func TestRottenPagesAreReported(t *testing.T) {
	s := stocked(t)
	dir := s.dir
	closeStore(t, s)
	// The last page of the file belongs to the long log.
	for at := int64(20 * 4096); at < 21*4096; at += 100 {
		flip(t, dir, at)
	}
	s = reopen(t, dir, Options{})
	report := checked(t, s)
	if !slices.ContainsFunc(report.Problems, func(p Problem) bool { return p.Code == DamagedPages }) {
		t.Fatalf("%+v", report.Problems)
	}
	if report.Logs < 2 {
		t.Errorf("only %d logs were looked at", report.Logs)
	}
}
