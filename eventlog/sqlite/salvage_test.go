package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

// salvage gives what is salvaged by id.
func salvage(t testing.TB, dir string) (logs map[string][]event.Event, lost []string, report SalvageReport) {
	t.Helper()
	logs = map[string][]event.Event{}
	report, err := Salvage(t.Context(), dir, func(l SalvagedLog) error {
		events := []event.Event{}
		for e, err := range l.Events {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		if _, twice := logs[l.Header.ID]; twice {
			t.Errorf("%s came twice", l.Header.ID)
		}
		logs[l.Header.ID] = events
		if l.HeaderLost {
			lost = append(lost, l.Header.ID)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Salvage: %v", err)
	}
	return logs, lost, report
}

func TestSalvageGivesWhatIsWhole(t *testing.T) {
	for name, c := range map[string]struct {
		sql                string
		a, staged          int
		lost               []string
		aIs                string
		whole, cut, faults int64
	}{
		"a sound store":      {"SELECT 1", 12, 2103, nil, "a", 3, 0, 0},
		"a damaged event":    {"UPDATE events SET data = x'31' WHERE log = 1 AND seq = 4", 4, 2103, nil, "a", 2, 1, 1},
		"a lost event":       {"DELETE FROM events WHERE log = 2 AND seq = 1500", 12, 1500, nil, "a", 2, 1, 1},
		"a lost head":        {"DELETE FROM heads WHERE log = 1", 12, 2103, nil, "a", 2, 1, 1},
		"a lost header":      {"DELETE FROM logs WHERE n = 1", 12, 2103, []string{"salvaged-1"}, "salvaged-1", 3, 0, 1},
		"a damaged header":   {"UPDATE logs SET header = x'7b7d' WHERE n = 1", 12, 2103, []string{"a"}, "a", 3, 0, 1},
		"all but the events": {"DELETE FROM logs; DELETE FROM heads; DELETE FROM meta", 12, 2103, []string{"salvaged-1", "salvaged-2"}, "salvaged-1", 0, 2, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := stocked(t)
			swept(t, s)
			want := contents(t, s, "staged")
			if err := s.change(nowhere, 0, func(w *writer) error { return w.c.exec(c.sql) }); err != nil {
				t.Fatal(err)
			}
			dir := s.dir
			end(s)
			before := files(t, dir)
			logs, lost, report := salvage(t, dir)
			unchanged(t, dir, before)
			if got := logs[c.aIs]; !slices.EqualFunc(got, row(0, c.a), same) {
				t.Errorf("a has %d events, want %d", len(got), c.a)
			}
			staged := "staged"
			if len(c.lost) == 2 {
				staged = c.lost[1]
			}
			if got := logs[staged]; !slices.EqualFunc(got, want[:c.staged], same) {
				t.Errorf("the staged log has %d events, want %d", len(got), c.staged)
			}
			slices.Sort(lost)
			if !slices.Equal(lost, c.lost) {
				t.Errorf("headers lost: %q", lost)
			}
			if report.Whole != c.whole || report.Cut != c.cut || int64(len(report.Problems)) != c.faults || report.Events != int64(c.a+c.staged) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A store that cannot be opened is not salvaged without a word, also where every log is whole.
func TestSalvageSaysWhatIsDamagedBesideTheLogs(t *testing.T) {
	for name, spoil := range map[string]func(dir string, size, index int64){
		"another application": func(dir string, _, _ int64) { set(t, dir, 68, []byte{0}) },
		"a format below 0":    func(dir string, _, _ int64) { set(t, dir, 60, []byte{0xff}) },
		"a page of an index":  func(dir string, size, index int64) { set(t, dir, (index-1)*size, make([]byte, size)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := stocked(t)
			swept(t, s)
			var size, index int64
			err := s.change(nowhere, 0, func(w *writer) (err error) {
				if size, err = w.c.number("PRAGMA page_size"); err == nil {
					index, err = w.c.number("SELECT rootpage FROM sqlite_schema WHERE name = 'heads_by_position'")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			spoil(s.dir, size, index)
			if s, err := Open(t.Context(), s.dir, Options{}); !told(err) {
				t.Errorf("Open: %v", err)
				if err == nil {
					end(s)
				}
			}
			logs, lost, report := salvage(t, s.dir)
			if len(logs) != 3 || len(lost) > 0 || report.Whole != 3 || report.Cut != 0 || len(report.Problems) != 1 || report.Problems[0].Code != DamagedPages {
				t.Errorf("%+v", report)
			}
		})
	}
}

// Whatever rots, what is salvaged is a beginning of what was there.
func TestWhatIsSalvagedIsNeverSomethingElse(t *testing.T) {
	s := stocked(t)
	want := map[string][]event.Event{}
	for _, id := range []string{"a", "staged", "empty"} {
		want[id] = contents(t, s, id)
	}
	dir := s.dir
	closeStore(t, s)
	sound, err := os.ReadFile(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	rounds := 100
	if underRace {
		rounds = 10
	}
	random := rand.New(rand.NewPCG(9, 10))
	cut, refused := 0, 0
	for range rounds {
		rotten := slices.Clone(sound)
		// A block of the disk that cannot be read any more, and two flipped bytes.
		at := random.IntN(len(rotten)/512) * 512
		clear(rotten[at : at+512])
		for range 2 {
			rotten[random.IntN(len(rotten))] ^= byte(1 + random.IntN(255))
		}
		place := memoryDir(t)
		if err := os.WriteFile(filepath.Join(place, dbName), rotten, 0o600); err != nil {
			t.Fatal(err)
		}
		var report SalvageReport
		report, err := Salvage(t.Context(), place, func(l SalvagedLog) error {
			n := 0
			for e, err := range l.Events {
				if err != nil {
					return err
				}
				if l.HeaderLost {
					continue // it may go by another name
				}
				if n >= len(want[l.Header.ID]) || !same(e, want[l.Header.ID][n]) {
					t.Errorf("%s has something else at %d", l.Header.ID, n)
					return errors.New("wrong")
				}
				n++
			}
			return nil
		})
		if err != nil {
			if !told(err) {
				t.Errorf("%v (%T)", err, err)
			}
			refused++
		}
		cut += int(report.Cut)
	}
	if cut == 0 || refused == rounds {
		t.Errorf("%d logs were cut, %d stores could not be read: this shows nothing", cut, refused)
	}
}

// A copy that was cut short is what a full disk leaves. What is salvaged of one is a beginning of what was there as well, and never nothing where only its end is missing.
func TestSalvageOfAStoreThatIsCutShort(t *testing.T) {
	s := stocked(t)
	swept(t, s)
	want := map[string][]event.Event{}
	for _, id := range []string{"a", "staged", "empty"} {
		want[id] = contents(t, s, id)
	}
	var size int64
	err := s.change(nowhere, 0, func(w *writer) (err error) {
		size, err = w.c.number("PRAGMA page_size")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := s.dir
	closeStore(t, s)
	path := filepath.Join(dir, dbName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pages := int64(len(whole)) / size
	for _, kept := range []int64{pages - 1, pages * 3 / 4, pages / 2, 3} {
		if err := os.WriteFile(path, whole[:kept*size], 0o600); err != nil {
			t.Fatal(err)
		}
		before := files(t, dir)[dbName]
		logs, lost, report := salvage(t, dir)
		if files(t, dir)[dbName] != before {
			t.Errorf("%d of %d pages: the store was changed", kept, pages)
		}
		for id, events := range logs {
			if slices.Contains(lost, id) {
				continue // It goes by another name.
			}
			if n := len(events); n > len(want[id]) || !slices.EqualFunc(events, want[id][:n], same) {
				t.Errorf("%d of %d pages: %s has something else", kept, pages, id)
			}
		}
		if len(report.Problems) == 0 || kept == pages-1 && report.Events == 0 {
			t.Errorf("%d of %d pages: %+v", kept, pages, report)
		}
	}
}

func TestASalvageThatIsRefused(t *testing.T) {
	s := stocked(t)
	none := func(SalvagedLog) error { return nil }
	_, err := Salvage(t.Context(), s.dir, none)
	as[*LockedError](t, "of a store in use", err)
	closeStore(t, s)
	wrong := errors.New("no room")
	if _, err := Salvage(t.Context(), s.dir, func(SalvagedLog) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("Salvage: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Salvage(ctx, s.dir, func(l SalvagedLog) error {
		cancel()
		for _, err := range l.Events {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Salvage: %v", err)
	}
	set(t, s.dir, 60, []byte{0, 0, 0, 99})
	_, err = Salvage(t.Context(), s.dir, none)
	as[*NewerError](t, "of a newer store", err)
	set(t, s.dir, 0, make([]byte, 100))
	_, err = Salvage(t.Context(), s.dir, none)
	if e := as[*DamagedError](t, "of something without a header", err); e != nil && !strings.Contains(e.Error(), "nothing was salvaged") {
		t.Errorf("it says %v", e)
	}
	empty := t.TempDir()
	for _, dir := range []string{filepath.Join(empty, "none"), empty} {
		_, err = Salvage(t.Context(), dir, none)
		as[*NotStoreError](t, "of nothing", err)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("something was made: %v, %v", left, err)
	}
}
