// Command tokenusage is the tokenusage plugin: what a session's model calls have used.
package main

import (
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
)

func main() { sdk.Serve(plugin) }

var plugin = sdk.Plugin{
	Name:    "tokenusage",
	Summary: "what the model calls of a session have used",
	Units:   []sdk.Unit{usageunit.Projection},
}
