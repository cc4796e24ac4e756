package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// told says whether an error is one that damage may give.
func told(err error) bool {
	_, corrupt := errors.AsType[*eventlog.CorruptError](err)
	_, damaged := errors.AsType[*DamagedError](err)
	_, noStore := errors.AsType[*NotStoreError](err)
	_, newer := errors.AsType[*NewerError](err)
	return corrupt || damaged || noStore || newer
}

// Any byte of the database may rot: what is read then is right, or an error that says where. It is never something else.
func TestRottenBytesAreToldOrHarmless(t *testing.T) {
	dir := memoryDir(t)
	s := reopen(t, dir, Options{})
	ids := []string{"a", "b", "c"}
	want := map[string][]event.Event{}
	for i, id := range ids {
		want[id] = batch(0, 40*(i+1))
		create(t, s, id, want[id]...)
		if err := s.SaveRows(t.Context(), eventlog.Life{ID: id}, []eventlog.Row{{Key: "n", Cut: 3, Seq: 3, Data: []byte("row of " + id)}}); err != nil {
			t.Fatal(err)
		}
	}
	headers := map[string]string{}
	for _, id := range ids {
		info, err := s.Info(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		headers[id] = fmt.Sprint(string(info.Header.AppendJSON(nil)), info.Incarnation, info.Seq, info.Position)
	}
	closeStore(t, s)
	sound, err := os.ReadFile(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	rounds := 400
	if underRace {
		rounds = 30
	}
	random := rand.New(rand.NewPCG(7, 8))
	harmless, seen := 0, 0
	for range rounds {
		rotten := slices.Clone(sound)
		for range 1 + random.IntN(3) {
			rotten[random.IntN(len(rotten))] ^= byte(1 + random.IntN(255))
		}
		place := memoryDir(t)
		if err := os.WriteFile(filepath.Join(place, dbName), rotten, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), place, Options{})
		if err != nil {
			if !told(err) {
				t.Errorf("Open: %v (%T)", err, err)
			}
			seen++
			continue
		}
		bad := false
		for _, id := range ids {
			info, err := s.Info(t.Context(), id)
			if err == nil {
				if got := fmt.Sprint(string(info.Header.AppendJSON(nil)), info.Incarnation, info.Seq, info.Position); got != headers[id] {
					t.Errorf("%s is %s, it was %s", id, got, headers[id])
				}
				var events []event.Event
				if events, err = read(s, id); err == nil && !slices.EqualFunc(events, want[id], same) {
					t.Errorf("%s reads as something else", id)
				}
			}
			if _, gone := errors.AsType[*eventlog.NotFoundError](err); gone {
				// A rotten index can hide a log. The check of the whole store finds that; here it only counts as damage that was met.
				bad = true
				continue
			}
			if err != nil && !told(err) {
				t.Errorf("%s: %v (%T)", id, err, err)
			}
			bad = bad || err != nil
			if set, err := s.Rows(t.Context(), eventlog.Life{ID: id}); err == nil {
				for _, row := range set.Rows {
					if row.Key != "n" || row.Cut != 3 || string(row.Data) != "row of "+id {
						t.Errorf("a row of %s is %+v", id, row)
					}
				}
			}
		}
		if bad {
			seen++
		} else {
			harmless++
		}
		end(s)
	}
	if seen == 0 || harmless == 0 {
		t.Errorf("%d times damage was met, %d times not: this shows nothing", seen, harmless)
	}
}

func same(a, b event.Event) bool { return string(a.AppendJSON(nil)) == string(b.AppendJSON(nil)) }

// What is damaged in one place is told with the place, and the rest goes on.
func TestDamageHasAPlace(t *testing.T) {
	damages := map[string]struct {
		sql string
		// at is the seq that errors name, −1 for the log as a whole.
		at int64
	}{
		"an event's data":     {"UPDATE events SET data = x'78' WHERE seq = 5 AND log = 1", 5},
		"an event's time":     {"UPDATE events SET time = time + 1 WHERE seq = 5 AND log = 1", 5},
		"an event's type":     {"UPDATE events SET type = type % 3 + 1 WHERE seq = 5 AND log = 1", 5},
		"an unknown type":     {"UPDATE events SET type = 99 WHERE seq = 5 AND log = 1", 5},
		"an event's sources":  {"UPDATE events SET extra = x'7b7d' WHERE seq = 5 AND log = 1", 5},
		"a lost event":        {"DELETE FROM events WHERE seq = 5 AND log = 1", 5},
		"the last event lost": {"DELETE FROM events WHERE seq = 9 AND log = 1", 9},
		"an event of another": {"UPDATE events SET log = 1, seq = 5 WHERE log = 2 AND seq = 0", 5},
		"a head":              {"UPDATE heads SET seq = 8 WHERE log = 1", -1},
		"a lost head":         {"DELETE FROM heads WHERE log = 1", -1},
		"a header":            {"UPDATE logs SET header = x'7b7d' WHERE n = 1", -1},
		"an incarnation":      {"UPDATE logs SET incarnation = 'x' WHERE n = 1", -1},
	}
	for name, d := range damages {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			s := reopen(t, dir, Options{})
			create(t, s, "a", row(0, 10)...)
			create(t, s, "b", row(0, 3)...)
			create(t, s, "c")
			if name == "an event of another" {
				d.sql = "DELETE FROM events WHERE log = 1 AND seq = 5; " + d.sql
			}
			if err := s.change(nowhere, 0, func(w *writer) error {
				clear(w.heads)
				return w.c.exec(d.sql)
			}); err != nil {
				t.Fatal(err)
			}
			_, err := read(s, "a")
			if e := as[*eventlog.CorruptError](t, "reading", err); e.ID != "a" || d.at >= 0 && e.Seq != d.at {
				t.Errorf("%+v", e)
			}
			if d.at < 0 {
				as[*eventlog.CorruptError](t, "Append", add(s, "a", row(10, 1)...))
				_, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "a"}})
				as[*eventlog.ExistsError](t, "Create", err)
			}
			if s.Failed() != nil {
				t.Errorf("the store gave up: %v", s.Failed())
			}
			if name != "an event of another" {
				holds(t, s, "b", row(0, 3))
				// Damage to one log as a whole keeps nobody from finding the others, and no page from having a next.
				var listed []string
				for q := (eventlog.ListQuery{Limit: 1}); ; {
					page, err := s.List(nowhere, q)
					if err != nil {
						t.Fatalf("List: %v", err)
					}
					for _, l := range page.Logs {
						listed = append(listed, l.Header.ID)
					}
					if q.Cursor = page.Cursor; q.Cursor == "" {
						break
					}
				}
				sets, err := s.RowsOf(nowhere, []string{"a", "b"})
				if want := []string{"c", "b", "a"}[:len(listed)]; !slices.Equal(listed, want) || err != nil || len(sets) != len(listed)-1 || (d.at < 0) != (len(listed) == 2) {
					t.Errorf("listed are %q; %d sets of rows, %v", listed, len(sets), err)
				}
				mustAdd(t, s, "b", row(3, 1)...)
			}
			// What is damaged can be thrown away.
			if err := s.Delete(t.Context(), eventlog.Life{ID: "a"}); err != nil {
				t.Fatal(err)
			}
			create(t, s, "a", row(0, 10)...)
			holds(t, s, "a", row(0, 10))
		})
	}
}

func TestADamagedRowIsNotGiven(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{})
	create(t, s, "a", row(0, 10)...)
	rows := func(cut int64) []eventlog.Row {
		return []eventlog.Row{{Key: "n", Cut: cut, Seq: cut, Data: []byte("n")}, {Key: "m", Cut: cut, Seq: cut, Data: []byte("m")}}
	}
	for _, cut := range []int64{3, 5} {
		if err := errors.Join(s.SaveRows(t.Context(), eventlog.Life{ID: "a"}, rows(cut)), s.SavePast(t.Context(), eventlog.Life{ID: "a"}, rows(cut))); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"UPDATE rows SET data = x'78' WHERE key = 'n'", "UPDATE rows SET cut = 100 WHERE key = 'm'", "UPDATE past SET seq = seq + 1 WHERE key = 'n' AND seq = 5",
	} {
		if err := s.change(nowhere, 0, func(w *writer) error { return w.c.exec(sql) }); err != nil {
			t.Fatal(err)
		}
	}
	set, err := s.Rows(t.Context(), eventlog.Life{ID: "a"})
	if err != nil || len(set.Rows) != 0 {
		t.Errorf("%+v, %v", set.Rows, err)
	}
	past, ok, err := s.PastRow(t.Context(), eventlog.Life{ID: "a"}, "n", 9)
	if err != nil || !ok || past.Seq != 3 {
		t.Errorf("%+v, %v, %v", past, ok, err)
	}
	// They are in nobody's way.
	if err := s.SaveRows(t.Context(), eventlog.Life{ID: "a"}, rows(6)); err != nil {
		t.Fatal(err)
	}
	if set, err = s.Rows(t.Context(), eventlog.Life{ID: "a"}); err != nil || len(set.Rows) != 2 {
		t.Errorf("%+v, %v", set.Rows, err)
	}
}
