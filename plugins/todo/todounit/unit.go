// Package todounit is the unit of the todo plugin: the current list of tasks.
//
// It owns the event type todo/write, which carries the whole list each time. It holds no state of its own.
package todounit

import "github.com/foldhost/foldhost/sdk"

// WriteType is the event that replaces the list.
const WriteType = "todo/write"

// Write is the data of a todo/write.
type Write struct {
	Todos Todos `json:"todos" jsonschema:"nonnull"`
}

// Todos is the list, in the order in which it was written; nil where this turn has written none.
type Todos []Todo

// Todo is one task.
type Todo struct {
	Content string `json:"content"`
	Status  Status `json:"status"`
}

// Status says how far a task is.
type Status string

// The three statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
)

// JSONSchema names the statuses.
func (Status) JSONSchema() *sdk.Schema { return sdk.Enum(Pending, InProgress, Completed) }

// Projection is the list of this turn: a write replaces it, the start of the next turn clears it, the end of a turn keeps it.
var Projection = sdk.ProjectionDefinition[Todos, Todos]{
	Key:          "todos",
	StateVersion: 2,
	On: sdk.Handlers[Todos]{
		WriteType:    sdk.On(func(_ Todos, w Write) Todos { return w.Todos }),
		"turn/start": sdk.On(func(Todos, any) Todos { return nil }),
	},
	View: sdk.Same[Todos],
}
