package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// TestAPoisonedEventFaultsOneCell: a plugin that exits or hangs at one event of one session loses that cell at that seq; every other
// session and every other unit of the same plugin stays right, and the plugin is not parked for it.
func TestAPoisonedEventFaultsOneCell(t *testing.T) {
	const sessions = 100
	for _, how := range []string{"exit", "hang", "panic", "goroutine", "error"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"wrong": withQuick(wrong(t))})
			all := make([]*session.Session, sessions)
			for i := range all {
				all[i] = newSession(t, h, fmt.Sprint("s", i))
				step(t, all[i], i)
			}
			for _, s := range all {
				value(t, h, s, "count")
			}
			bad := all[42]
			poison(t, bad, how) // seq 1
			for i, s := range all {
				step(t, s, i)
			}
			for i, s := range all {
				if s == bad {
					continue
				}
				block := current(t, h, s, "count", "sum", "last")
				same(t, "the values of another session", fmt.Sprintf("%s %s %s", block.Values["count"], block.Values["sum"], block.Values["last"]), fmt.Sprintf("2 %d %d", 2*i, i))
			}
			eventually(t, "the poisoned cell is faulted", func() bool {
				block, err := h.Snapshot(context.Background(), bad, "count")
				if err != nil {
					t.Fatal(err)
				}
				u := block.Unavailable["count"]
				return u.Code == registry.Faulted && u.FailedAt == 1
			})
			block := current(t, h, bad, "sum", "last")
			same(t, "the other units of the session", fmt.Sprintf("%s %s", block.Values["sum"], block.Values["last"]), "84 42")
			p := plugin(t, h, "wrong")
			same(t, "the plugin", p.State, host.PluginReady)
			t.Logf("%d restarts", p.Restarts)
		})
	}
}

// TestManyPoisonedSessionsDoNotParkThePlugin: deaths that are explained by an event do not count.
func TestManyPoisonedSessionsDoNotParkThePlugin(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t))})
	var all []*session.Session
	for i := range 6 {
		s := newSession(t, h, fmt.Sprint("s", i))
		poison(t, s, "exit")
		step(t, s, i)
		all = append(all, s)
	}
	for i, s := range all {
		eventually(t, "the poisoned cell is faulted", func() bool {
			block, err := h.Snapshot(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			return block.Unavailable["count"].Code == registry.Faulted
		})
		same(t, "the sum", value(t, h, s, "sum"), fmt.Sprint(i))
	}
	eventually(t, "the plugin is up", func() bool { return plugin(t, h, "wrong").State == host.PluginReady })
	t.Logf("%d restarts", plugin(t, h, "wrong").Restarts)
}
