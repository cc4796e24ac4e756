package api

import (
	"net/http"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
)

// health says that the process answers, and nothing else.
func (c *call) health() error { return c.json(http.StatusOK, []byte(`{"ok":true}`)) }

// ready says whether the first start of every plugin has ended, well or not, and what is missing. The store is open since before there was an API.
func (c *call) ready() error {
	ready := c.api.tried.Load() && !c.api.stopping()
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	out := strconv.AppendBool([]byte(`{"ready":`), ready)
	out = append(out, `,"missing":[`...)
	comma := ""
	miss := func(what, state, reason string, presets []string) {
		out = event.AppendString(append(append(out, comma...), `{"plugin":`...), what)
		out = event.AppendString(append(out, `,"state":`...), state)
		if len(presets) > 0 {
			out = append(append(out, `,"presets":`...), array(presets, event.AppendString)...)
		}
		if reason != "" && c.held.has(scopeAdmin) { // A reason may name files.
			out = event.AppendString(append(out, `,"reason":`...), reason)
		}
		out, comma = append(out, '}'), ","
	}
	for _, p := range c.api.host.PluginStates() {
		if p.State != host.PluginReady && p.State != host.PluginDisabled {
			presets := p.Presets
			if !p.PresetOnly {
				presets = nil // The default set lacks it, and so do they.
			}
			miss(p.Name, string(p.State), p.Reason, presets)
		}
	}
	return c.json(status, append(out, "]}"...))
}
