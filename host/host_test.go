package host_test

import (
	"errors"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

func create(t *testing.T, h *host.Host, header event.Header) *session.Session {
	t.Helper()
	s, err := h.Sessions().Create(t.Context(), session.New{Header: header})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func appendAll(t *testing.T, s *session.Session, types ...string) {
	t.Helper()
	for _, typ := range types {
		if _, err := s.Append(t.Context(), typ, map[string]int{}, session.Intent{}); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshot(t *testing.T, h *host.Host, s *session.Session) registry.Block {
	t.Helper()
	block, err := h.Snapshot(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return block
}

func TestValuesFollowTheLogWarmAndCold(t *testing.T) {
	h := newHost(t, "n")
	s := create(t, h, event.Header{ID: "s"})
	same(t, "the value of the empty log", string(snapshot(t, h, s).Values["n"]), "0")
	appendAll(t, s, "step", "other", "step")
	block := snapshot(t, h, s)
	same(t, "asOfSeq", block.AsOfSeq, 2)
	same(t, "the value", string(block.Values["n"]), "2")

	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "the value once cold", string(snapshot(t, h, s).Values["n"]), "2")
	appendAll(t, s, "step")
	same(t, "the value of the next life", string(snapshot(t, h, s).Values["n"]), "3")

	past, err := h.SnapshotAt(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the value at seq 0", string(past.Values["n"]), "1")
	same(t, "historical", past.Historical, true)
}

func TestADetachUnderUseStartsOver(t *testing.T) {
	h := newHost(t, "n")
	s := create(t, h, event.Header{ID: "s"})
	appendAll(t, s, "step")
	calls := 0
	err := h.Projections(t.Context(), s, func(rs *registry.Session) error {
		if calls++; calls == 1 {
			if err := s.Detach(t.Context()); err != nil {
				return err
			}
		}
		block, err := rs.Snapshot(t.Context())
		if err == nil {
			same(t, "the value", string(block.Values["n"]), "1")
		}
		return err
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestASecondLifeSharesNothingWithTheFirst(t *testing.T) {
	h := newHost(t, "n")
	first := create(t, h, event.Header{ID: "s"})
	appendAll(t, first, "step", "step")
	snapshot(t, h, first)
	if err := h.Sessions().Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	second := create(t, h, event.Header{ID: "s"})
	same(t, "the value of the second", string(snapshot(t, h, second).Values["n"]), "0")
	var gone *eventlog.NotFoundError
	if _, err := h.Snapshot(t.Context(), first); !errors.As(err, &gone) {
		t.Errorf("the first life answers: %v", err)
	}
}

func TestASessionSeesTheUnitsOfItsPreset(t *testing.T) {
	h := newHost(t)
	for plugin, key := range map[string]string{"a": "na", "b": "nb"} {
		if _, err := h.Register(plugin, number(key)); err != nil {
			t.Fatal(err)
		}
	}
	h.Registry().SetMembers("only b", []registry.Registrant{{Plugin: "b"}})
	preset, unknown := "only b", "never heard of"
	for name, c := range map[string]struct {
		preset *string
		want   int
	}{"none": {nil, 2}, "known": {&preset, 1}, "unknown": {&unknown, 2}} {
		s := create(t, h, event.Header{AgentPreset: c.preset})
		block := snapshot(t, h, s)
		if len(block.Values) != c.want || block.Values["nb"] == nil {
			t.Errorf("preset %s: %v", name, block.Values)
		}
	}
}

func TestARegistrationComesAndGoes(t *testing.T) {
	h := newHost(t)
	s := create(t, h, event.Header{ID: "s"})
	appendAll(t, s, "step")
	reg, err := h.Register("test", number("n"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the value of a unit that came late", string(snapshot(t, h, s).Values["n"]), "1")
	reg.Release()
	if v, there := snapshot(t, h, s).Values["n"]; there {
		t.Errorf("released and still served: %s", v)
	}
}

func TestAStoreThatWasGivenIsNotClosed(t *testing.T) {
	store := memory.New()
	defer store.Close()
	h := host.New(host.Options{Store: store})
	create(t, h, event.Header{ID: "s"})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Info(t.Context(), "s"); err != nil {
		t.Errorf("the store is closed: %v", err)
	}
	// Another host over it goes on where the first ended.
	h = host.New(host.Options{Store: store})
	defer h.Close()
	if _, err := h.Sessions().Open(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}
