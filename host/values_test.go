package host_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// rowed is a store whose reads are counted and whose writes of rows can be made to hang.
type rowed struct {
	*logtest.SlowStore
	eventlog.RowStore
	hang bool
}

func (s *rowed) SaveRows(ctx context.Context, l eventlog.Life, rows []eventlog.Row) error {
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.RowStore.SaveRows(ctx, l, rows)
}

// stored runs a test with a host over a store that keeps rows, in a bubble.
func stored(t *testing.T, o host.Options, test func(t *testing.T, h *host.Host, store *rowed)) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		defer m.Close()
		store := &rowed{SlowStore: logtest.Slow(m), RowStore: m}
		o.Store, o.Logger = store, slog.New(slog.DiscardHandler)
		h := host.New(o)
		defer h.Close()
		test(t, h, store)
	})
}

func register(t *testing.T, h *host.Host, def unit.Definition) *registry.Registration {
	t.Helper()
	g, err := h.Register("test", def)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// valueOf reads one key of a session by its id.
func valueOf(t *testing.T, h *host.Host, id, key string) string {
	t.Helper()
	block, err := h.Values(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return string(block.Values[key])
}

func TestNobodyCanTellFromTheValuesWhetherASessionIsLive(t *testing.T) {
	stored(t, host.Options{}, func(t *testing.T, h *host.Host, store *rowed) {
		register(t, h, number("n"))
		s := create(t, h, event.Header{ID: "s"})
		appendAll(t, s, "step", "other", "step")
		check := func(live bool) {
			t.Helper()
			same(t, "live", s.Live(), live)
			same(t, "the value", valueOf(t, h, "s", "n"), "2")
			past, err := h.ValuesAt(t.Context(), "s", 1)
			if err != nil || string(past.Values["n"]) != "1" || !past.Historical || past.AsOfSeq != 1 {
				t.Errorf("the past is %s (%v)", past.AppendJSON(nil), err)
			}
			var out *registry.SeqRangeError
			if _, err := h.ValuesAt(t.Context(), "s", 3); !errors.As(err, &out) {
				t.Errorf("beyond the head: %v", err)
			}
			items, err := h.ListValues(t.Context(), []string{"s", "none"})
			if err != nil || len(items) != 1 || string(items[0].Block.Values["n"]) != "2" || items[0].Info.Seq != 3 {
				t.Errorf("a list gives %+v (%v)", items, err)
			}
			report, err := h.VerifyValues(t.Context(), "s")
			if err != nil || len(report.Keys) != 1 || len(report.Differences) != 0 {
				t.Errorf("verified: %+v (%v)", report, err)
			}
			same(t, "live afterwards", s.Live(), live)
		}
		check(true)
		if err := s.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check(false)
		if err := h.Sessions().Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		var gone *eventlog.NotFoundError
		if _, err := h.Values(t.Context(), "s"); !errors.As(err, &gone) {
			t.Errorf("deleted: %v", err)
		}
	})
}

// TestCellsReadOnlyTheTypesThatTheyFold: live or cold, with rows or without.
func TestCellsReadOnlyTheTypesThatTheyFold(t *testing.T) {
	stored(t, host.Options{}, func(t *testing.T, h *host.Host, store *rowed) {
		s := create(t, h, event.Header{ID: "s"})
		for range 50 {
			appendAll(t, s, "step", "other", "other", "other")
		}
		cold := func() {
			t.Helper()
			if err := s.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		cold()
		g := register(t, h, number("n"))
		store.Counts()
		same(t, "cold", valueOf(t, h, "s", "n"), "50")
		same(t, "events read cold: those folded and the last", store.Counts().Read, 50+1)
		synctest.Wait()
		same(t, "cold again", valueOf(t, h, "s", "n"), "50")
		same(t, "events read from fresh rows", store.Counts().Read, 1)

		g.Release()
		other := number("m")
		register(t, h, other)
		release, err := s.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		store.Counts()
		same(t, "live", valueOf(t, h, "s", "m"), "50")
		same(t, "events read live: those folded", store.Counts().Read, 50)
		release()
		cold()
		store.Counts()
		same(t, "cold after a build", valueOf(t, h, "s", "m"), "50")
		same(t, "events read: the build was written when the session went cold", store.Counts().Read, 1)
	})
}

func TestNoAppendWaitsForARow(t *testing.T) {
	stored(t, host.Options{}, func(t *testing.T, h *host.Host, store *rowed) {
		register(t, h, number("n"))
		store.hang = true
		began := time.Now()
		s := create(t, h, event.Header{ID: "s"})
		for range 20 {
			appendAll(t, s, "step")
			if _, err := s.Append(t.Context(), event.TurnStart, map[string]int{"turn": 1}, session.Intent{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append(t.Context(), event.TurnEnd, map[string]any{"turn": 1, "reason": map[string]string{"kind": "done"}}, session.Intent{}); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "the value", valueOf(t, h, "s", "n"), "20")
		same(t, "the time that it took", time.Since(began), 0)
	})
}

// TestALiveBuildOverASlowStoreNamesWhatIsMissing: a unit that is new to a long log keeps a reader no longer than ReadWait, and comes later.
func TestALiveBuildOverASlowStoreNamesWhatIsMissing(t *testing.T) {
	for name, live := range map[string]bool{"live": true, "cold": false} {
		t.Run(name, func(t *testing.T) {
			stored(t, host.Options{Registry: registry.Options{ReadWait: time.Second}}, func(t *testing.T, h *host.Host, store *rowed) {
				s := create(t, h, event.Header{ID: "s"})
				appendAll(t, s, "step", "step")
				if !live {
					if err := s.Detach(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				register(t, h, number("n"))
				gate := store.Hold(logtest.Read)
				began := time.Now()
				block, err := h.Values(t.Context(), "s")
				if u := block.Unavailable["n"]; err != nil || u.Code != registry.Behind || u.Seq != -1 || block.AsOfSeq != 1 {
					t.Errorf("%s (%v)", block.AppendJSON(nil), err)
				}
				same(t, "the wait", time.Since(began), time.Second)
				gate.Release()
				synctest.Wait()
				same(t, "the value later", valueOf(t, h, "s", "n"), "2")
				same(t, "live", s.Live(), live)
			})
		})
	}
}

// TestAListWaitsOnceForAll: given many live sessions whose values are being built from a slow store, a list comes after a moment.
func TestAListWaitsOnceForAll(t *testing.T) {
	stored(t, host.Options{Checkpoint: checkpoint.Options{}}, func(t *testing.T, h *host.Host, store *rowed) {
		var ids []string
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			appendAll(t, create(t, h, event.Header{ID: id}), "step")
			ids = append(ids, id)
		}
		register(t, h, number("n"))
		gate := store.Hold(logtest.Read)
		began := time.Now()
		items, err := h.ListValues(t.Context(), ids)
		if err != nil || len(items) != 5 {
			t.Fatalf("%d items (%v)", len(items), err)
		}
		same(t, "the wait", time.Since(began), 250*time.Millisecond)
		for _, item := range items {
			same(t, item.Info.Header.ID, item.Block.Unavailable["n"].Code, registry.Behind)
		}
		gate.Release()
	})
}
