package host

import (
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/session"
)

// tables say, set by set, who owns which event type and which tool serves under a name. Immutable.
type tables struct {
	standard *table
	presets  map[string]*table
}

// table is that of one set.
type table struct {
	owners *owners
	tools  *tools
}

// of gives the table of a set; a set that is not there is the default set.
func (t *tables) of(set string) *table {
	if one := t.presets[set]; one != nil {
		return one
	}
	return t.standard
}

// serving is a plugin that serves: how it stood when the tables were made, and how it stands at any time.
type serving struct {
	supervise.Status
	now func() PluginState
}

// newTable makes the table of a set. Tools are those of its members alone. Event types belong to its members first, and then to whoever else claims them:
// a bad event is refused wherever it would be one, since a session's set may have another member one day.
func newTable(members, others []serving) *table {
	t := &table{owners: &owners{byType: map[string]owner{}, refused: map[string][]refusal{}}, tools: newTools(members)}
	t.owners.add(members)
	t.owners.add(others)
	return t
}

// newTables makes all of them.
func (p *plugins) newTables() *tables {
	var residents []serving
	for _, s := range p.resident {
		residents = append(residents, serving{s, func() PluginState { return PluginReady }})
	}
	processes := make([]serving, len(p.list))
	for i, one := range p.list {
		processes[i] = serving{one.Facts(), func() PluginState { return PluginState(one.Facts().State) }}
	}
	// Plugins of this process come first: nothing that a process says takes away what they have.
	split := func(ours func(resident string) bool, set string) (members, others []serving) {
		for _, s := range residents {
			if ours(s.Name) {
				members = append(members, s)
			} else {
				others = append(others, s)
			}
		}
		for i, s := range processes {
			if p.list[i].serves(set) {
				members = append(members, s)
			} else {
				others = append(others, s)
			}
		}
		return members, others
	}
	t := &tables{standard: newTable(split(func(string) bool { return true }, "")), presets: make(map[string]*table, len(p.presets))}
	for name, preset := range p.presets {
		t.presets[name] = newTable(split(preset.has, name))
	}
	return t
}

// tableOf is the table of a session's set.
func (p *plugins) tableOf(s *session.Session) *table {
	t := p.tables.Load()
	if len(t.presets) == 0 {
		return t.standard
	}
	return t.of(setOf(s.Header()))
}
