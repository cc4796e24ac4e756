// Command imagelimits is the imagelimits plugin: what images a session accepts, as its config says.
package main

import (
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/sdk"
)

func main() { sdk.Serve(plugin) }

var plugin = sdk.Plugin{
	Name:    "imagelimits",
	Summary: "what images a session accepts",
	Configure: sdk.ConfiguredFrom(limitsunit.Default(), func(r *sdk.Registrar, limits limitsunit.Limits) error {
		_, err := r.Unit(limitsunit.New(limits))
		return err
	}),
}
