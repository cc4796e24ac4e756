package main

import (
	"fmt"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
)

// units are the ones that ship.
func units() ([]host.Unit, error) {
	var all []host.Unit
	for _, u := range []struct {
		plugin string
		unit   sdk.Unit
	}{
		{"imagelimits", limitsunit.New(limitsunit.Default())},
		{"title", titleunit.Projection},
		{"todo", todounit.Projection},
		{"tokenusage", usageunit.Projection},
	} {
		def, err := u.unit.Definition()
		if err != nil {
			return nil, fmt.Errorf("plugin %q: %w", u.plugin, err)
		}
		all = append(all, host.Unit{Plugin: u.plugin, Definition: def})
	}
	return all, nil
}
