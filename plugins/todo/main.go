// Command todo is the todo plugin: the list of tasks of a session, and the tool by which a model writes it.
package main

import (
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/sdk"
)

func main() { sdk.Serve(plugin) }

var plugin = sdk.Plugin{
	Name:    "todo",
	Summary: "the list of tasks of a session, and the tool todo_write",
	Owns:    []sdk.OwnedEvent{sdk.Owns[todounit.Write](todounit.WriteType)},
	Units:   []sdk.Unit{todounit.Projection},
	Configure: sdk.Configured(func(r *sdk.Registrar, c Config) error {
		_, err := r.Tool(todoWrite(c))
		return err
	}),
}
