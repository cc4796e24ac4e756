package host_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/host"
)

// A row that is whole, and stands on the right event, and is still wrong, is served: only a check against a fold from zero tells.
func TestCheckSessionsFindsAWrongValue(t *testing.T) {
	stored(t, host.Options{}, func(t *testing.T, h *host.Host, store *rowed) {
		register(t, h, number("n"))
		for id, types := range map[string][]string{"right": {"step", "step", "other"}, "wrong": {"other", "step", "other"}, "empty": nil} {
			s := create(t, h, event.Header{ID: id})
			appendAll(t, s, types...)
			if err := s.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		check := func(values bool) (found []host.SessionProblem) {
			t.Helper()
			steps := int64(0)
			err := h.CheckSessions(t.Context(), values, func(p host.SessionProblem) { found = append(found, p) }, func(done int64) {
				if steps++; done != steps {
					t.Errorf("%d done after %d steps", done, steps)
				}
			})
			if err != nil || steps != 3 {
				t.Errorf("%d steps, %v", steps, err)
			}
			return found
		}
		if found := check(true); len(found) > 0 {
			t.Fatalf("%+v", found)
		}
		set, err := store.Rows(t.Context(), eventlog.Life{ID: "right"})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range set.Rows {
			if row.Key == "n" {
				if err := store.SaveRows(t.Context(), eventlog.Life{ID: "wrong"}, []eventlog.Row{row}); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, "served", valueOf(t, h, "wrong", "n"), "2")
		if found := check(false); len(found) > 0 {
			t.Errorf("without values: %+v", found)
		}
		found := check(true)
		if len(found) == 0 {
			t.Fatal("nothing was found")
		}
		for _, p := range found {
			if p.Code != host.WrongValue || p.ID != "wrong" || p.Key != "n" || p.Seq != 2 {
				t.Errorf("%+v", p)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.CheckSessions(t.Context(), true, nil, nil); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}
