// Command title is the title plugin: what a session is called.
package main

import (
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/sdk"
)

func main() { sdk.Serve(plugin) }

var plugin = sdk.Plugin{
	Name:    "title",
	Summary: "what a session is called",
	Owns:    []sdk.OwnedEvent{sdk.Owns[titleunit.Set](titleunit.SetType)},
	Units:   []sdk.Unit{titleunit.Projection},
}
