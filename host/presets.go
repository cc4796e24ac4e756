package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/registry"
)

// UnknownPresetError: the configuration has no preset of this name.
type UnknownPresetError struct {
	Name string
	// Known are those that it has, sorted.
	Known []string
}

func (e *UnknownPresetError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no preset %q, nor any other: leave it out for the default set", e.Name)
	}
	return fmt.Sprintf("there is no preset %q: take one of %s, or leave it out for the default set", e.Name, strings.Join(e.Known, ", "))
}

// CheckPreset says whether sessions can be created with a preset; empty is the default set. The error is an *UnknownPresetError.
func (h *Host) CheckPreset(name string) error {
	if name == "" || h.plugins.presets[name] != nil {
		return nil
	}
	return &UnknownPresetError{name, slices.Sorted(maps.Keys(h.plugins.presets))}
}

// preset is a set of plugins that the configuration names.
type preset struct {
	members []registry.Registrant
	// missing are the plugins that it names and that are not started, sorted by name.
	missing []Plugin
}

// has says whether a plugin of this process is of the preset: one that it names and gives no config.
func (p *preset) has(resident string) bool {
	return slices.Contains(p.members, registry.Registrant{Plugin: resident})
}

// planned is one plugin with one config, which gets a process of its own, and the sets that it serves.
type planned struct {
	life.Spec
	by registry.Registrant
	// standard says that it is of the default set; presets are the other sets, sorted.
	standard bool
	presets  []string
}

// instance is one that is kept up.
type instance struct {
	*supervise.Plugin
	planned
}

// serves says whether it is of a set; empty is the default set.
func (p *planned) serves(set string) bool {
	if set == "" {
		return p.standard
	}
	return slices.Contains(p.presets, set)
}

// The registrant of the default set has no variant: sets that are not declared are made up of those. Others have the digest of their config.

// planPresets adds to the instances of the default set those that presets need besides: where plugin and config are equal, one serves both. missing
// says of a plugin that is not started why, for what the configuration names at a place.
func planPresets(file *config.File, standard []planned, missing func(place, plugin string) Plugin) ([]planned, map[string]*preset) {
	type key struct{ plugin, digest string }
	at, known := map[key]int{}, map[string]int{}
	all := slices.Clone(standard)
	for i := range all {
		at[key{all[i].Plugin, life.ConfigDigest(all[i].Config)}], known[all[i].Plugin] = i, i
	}
	presets := map[string]*preset{}
	for _, name := range slices.Sorted(maps.Keys(file.Presets)) {
		one := &preset{}
		presets[name] = one
		for _, plugin := range slices.Sorted(maps.Keys(file.Presets[name])) {
			own := file.Presets[name][plugin]
			place := "presets." + name + "." + plugin
			first, is := known[plugin]
			if !is {
				idle := missing(place, plugin)
				idle.Presets, idle.PresetOnly = []string{name}, true
				one.missing = append(one.missing, idle)
				if own == nil {
					one.members = append(one.members, registry.Registrant{Plugin: plugin}) // It may yet be added in this process.
				}
				continue
			}
			k := key{plugin, life.ConfigDigest(own)}
			i, shared := at[k]
			if !shared {
				other := planned{Spec: all[first].Spec, by: registry.Registrant{Plugin: plugin, Variant: k.digest}}
				other.Config, other.ConfigPlace = own, place+".config"
				i = len(all)
				at[k], all = i, append(all, other)
			}
			all[i].presets = append(all[i].presets, name)
			one.members = append(one.members, all[i].by)
		}
	}
	for i := range all {
		if p := &all[i]; !p.standard {
			p.Presets = presetsText(p.presets)
		}
	}
	slices.SortStableFunc(all, func(a, b planned) int {
		if c := strings.Compare(a.Plugin, b.Plugin); c != 0 || a.standard == b.standard {
			return cmp.Or(c, strings.Compare(a.Presets, b.Presets))
		}
		if a.standard {
			return -1
		}
		return 1
	})
	return all, presets
}

// presetConfig is the config that a plugin has in a preset, and its place. Errors: *UnknownPresetError, *NotInPresetError.
func presetConfig(file *config.File, preset, plugin string) (config json.RawMessage, place string, err error) {
	all, known := file.Presets[preset]
	if !known {
		return nil, "", &UnknownPresetError{preset, slices.Sorted(maps.Keys(file.Presets))}
	}
	own, named := all[plugin]
	if !named {
		return nil, "", &NotInPresetError{preset, plugin}
	}
	return own, "presets." + preset + "." + plugin + ".config", nil
}

// NotInPresetError: the preset does not name the plugin.
type NotInPresetError struct{ Preset, Plugin string }

func (e *NotInPresetError) Error() string {
	return fmt.Sprintf("preset %q does not name plugin %q: name it there, or leave the preset out", e.Preset, e.Plugin)
}

// maxStrange bounds how many presets that there are not are remembered: names come with sessions.
const maxStrange = 1000

// strange says, once for each, that a stored session names a preset that there is not.
func (p *plugins) strange(preset, session string) {
	if p.presets == nil {
		return // There is no configuration that could have one.
	}
	p.mu.Lock()
	told := p.told[preset] || len(p.told) >= maxStrange
	if !told {
		p.told[preset] = true
	}
	p.mu.Unlock()
	if !told {
		p.logger.Warn("a session has a preset that the configuration does not have; the default set serves it", "preset", preset, "session", session)
	}
}

// set is the set that serves the sessions of a preset: the default set where there is no such preset.
func (p *plugins) set(name string) string {
	if p.presets[name] == nil {
		return ""
	}
	return name
}

// presetsText names presets, separated by commas. One whose name has a comma or a quotation mark is quoted, so that no two lists are the same text.
func presetsText(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		if texts[i] = name; strings.ContainsAny(name, `,"`) {
			texts[i] = strconv.Quote(name)
		}
	}
	return strings.Join(texts, ",")
}
