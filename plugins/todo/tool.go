package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/sdk"
)

// Config is the plugin's config. It has no default: whether tasks run side by side is the operator's decision.
type Config struct {
	AllowParallelInProgress bool `json:"allowParallelInProgress" jsonschema:"description=Whether several tasks may be in progress at once."`
}

// Result is the list as it was written.
type Result struct {
	todounit.Write
	Counts Counts `json:"counts"`
}

// Counts are how many tasks have each status.
type Counts struct {
	Pending    int `json:"pending"`
	InProgress int `json:"inProgress"`
	Completed  int `json:"completed"`
}

// todoWrite is the tool by which a model writes the whole list. White space around a content is dropped; anything else that is not
// right is refused.
func todoWrite(c Config) sdk.AnyTool {
	rule := "At most one task may be in_progress at a time."
	if c.AllowParallelInProgress {
		rule = "Several tasks may be in_progress at once."
	}
	return sdk.Tool[todounit.Write, Result]{
		Name:        "todo_write",
		Description: "Replaces the session's list of tasks: give all of them each time, in order, each with a content of its own. " + rule,
		Call: func(_ context.Context, call *sdk.Call, given todounit.Write) (Result, error) {
			list, seen, n := todounit.Todos{}, map[string]bool{}, map[todounit.Status]int{}
			for i, t := range given.Todos {
				t.Content = strings.TrimSpace(t.Content)
				if t.Content == "" || seen[t.Content] {
					return Result{}, fmt.Errorf("todos[%d]: the content %q is empty or there already; give each task one of its own", i, t.Content)
				}
				seen[t.Content] = true
				n[t.Status]++
				list = append(list, t)
			}
			if n[todounit.InProgress] > 1 && !c.AllowParallelInProgress {
				return Result{}, fmt.Errorf("%d tasks are in_progress; at most one task may be", n[todounit.InProgress])
			}
			r := Result{todounit.Write{Todos: list}, Counts{n[todounit.Pending], n[todounit.InProgress], n[todounit.Completed]}}
			call.Append(todounit.WriteType, r.Write)
			call.Say("Updated todo list: %d pending, %d in progress, %d completed.", r.Counts.Pending, r.Counts.InProgress, r.Counts.Completed)
			return r, nil
		},
	}
}
