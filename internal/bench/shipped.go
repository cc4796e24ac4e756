package bench

import (
	"testing"

	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// shipped are the four units that ship.
func shipped(b *testing.B) []unit.Definition {
	b.Helper()
	var defs []unit.Definition
	for _, u := range []sdk.Unit{limitsunit.New(limitsunit.Default()), titleunit.Projection, todounit.Projection, usageunit.Projection} {
		def, err := u.Definition()
		if err != nil {
			b.Fatal(err)
		}
		defs = append(defs, def)
	}
	return defs
}
