package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// Stats are what the parts of a host have done and how they stand.
type Stats struct {
	// Sessions are live counters, Live how many sessions are live.
	Sessions *session.Stats
	Live     int
	Units    registry.Stats
	// Reads and Writes of checkpoint rows are live counters; Waiting is what has still to be written. Writes is nil where the store keeps no rows.
	Reads   *checkpoint.ReadStats
	Writes  *checkpoint.WriteStats
	Waiting checkpoint.Waiting
	// Plugins are those of Host.Plugins.
	Plugins []PluginStats
}

// PluginStats are those of one plugin with one config. Restarts counts its processes after the first, Deaths those that were up and failed.
type PluginStats struct {
	Name string
	// Presets are those that it serves, sorted and separated by commas, where it does not serve the default set; else empty. A name with a comma or a quotation mark is quoted.
	Presets          string
	State            PluginState
	Restarts, Deaths int
}

// Stats looks at every live session, without delaying any; see registry.Registry.Stats for what it costs.
func (h *Host) Stats() Stats {
	st := Stats{Sessions: h.sessions.Stats(), Live: h.sessions.Len(), Units: h.registry.Stats(), Reads: h.reader.Stats(), Plugins: h.plugins.stats()}
	if h.writer != nil {
		st.Writes, st.Waiting = h.writer.Stats(), h.writer.Waiting()
	}
	return st
}

func (p *plugins) stats() (all []PluginStats) {
	for _, idle := range p.idle {
		all = append(all, PluginStats{Name: idle.Name, State: idle.State})
	}
	for _, one := range p.list {
		s := one.Facts()
		st := PluginStats{Name: s.Name, State: PluginState(s.State), Restarts: s.Restarts, Deaths: s.Deaths}
		if !one.standard {
			st.Presets = presetsText(one.presets)
		}
		all = append(all, st)
	}
	residents := p.residents()
	for _, s := range residents {
		all = append(all, PluginStats{Name: s.Name, State: PluginState(s.State)})
	}
	for name, preset := range p.presets {
		for _, missing := range preset.lacking(residents) {
			all = append(all, PluginStats{Name: missing.Name, Presets: presetsText([]string{name}), State: missing.State})
		}
	}
	slices.SortFunc(all, func(a, b PluginStats) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Presets, b.Presets))
	})
	return all
}

// PluginStates are those that a plugin can be in.
func PluginStates() []PluginState {
	return []PluginState{PluginStarting, PluginReady, PluginBackoff, PluginParked, PluginDraining, PluginStopped, PluginDisabled, PluginMissing}
}
