package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// tool is todo_write of a plugin that is started with a config.
func tool(t *testing.T, config string) unit.Tool {
	t.Helper()
	running, err := plugin.Start(sdk.StartOptions{Config: json.RawMessage(config)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Stop(t.Context()) })
	tools := running.Tools()
	if len(tools) != 1 || tools[0].Name != "todo_write" || len(running.Units()) != 1 {
		t.Fatalf("got %d tools and %d units", len(tools), len(running.Units()))
	}
	return tools[0]
}

const single, parallel = `{"allowParallelInProgress":false}`, `{"allowParallelInProgress":true}`

func TestAListIsWrittenAsAWhole(t *testing.T) {
	for _, tt := range []struct {
		name, config, args   string
		value, text, written string
	}{
		{"two tasks", single, `{"todos":[{"content":"plan","status":"in_progress"},{"content":"build","status":"pending"}]}`,
			`{"todos":[{"content":"plan","status":"in_progress"},{"content":"build","status":"pending"}],"counts":{"pending":1,"inProgress":1,"completed":0}}`,
			"Updated todo list: 1 pending, 1 in progress, 0 completed.",
			`{"todos":[{"content":"plan","status":"in_progress"},{"content":"build","status":"pending"}]}`},
		{"white space around a content goes, within it stays", single, `{"todos":[{"content":"  plan the\n work\t","status":"completed"}]}`,
			`{"todos":[{"content":"plan the\n work","status":"completed"}],"counts":{"pending":0,"inProgress":0,"completed":1}}`,
			"Updated todo list: 0 pending, 0 in progress, 1 completed.",
			`{"todos":[{"content":"plan the\n work","status":"completed"}]}`},
		{"an empty list", single, `{"todos":[]}`,
			`{"todos":[],"counts":{"pending":0,"inProgress":0,"completed":0}}`,
			"Updated todo list: 0 pending, 0 in progress, 0 completed.", `{"todos":[]}`},
		{"two in progress where that is allowed", parallel, `{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`,
			`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}],"counts":{"pending":0,"inProgress":2,"completed":0}}`,
			"Updated todo list: 0 pending, 2 in progress, 0 completed.",
			`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tool(t, tt.config).Call(t.Context(), unit.ToolCall{Arguments: json.RawMessage(tt.args)})
			if err != nil {
				t.Fatal(err)
			}
			if !event.Equal(r.Value, json.RawMessage(tt.value)) || r.Text != tt.text {
				t.Errorf("got %s, %q", r.Value, r.Text)
			}
			if len(r.Events) != 1 || r.Events[0].Type != "todo/write" || !event.Equal(r.Events[0].Data, json.RawMessage(tt.written)) {
				t.Errorf("got events %v", r.Events)
			}
		})
	}
}

func TestAListThatIsNotRightTouchesNothing(t *testing.T) {
	for name, args := range map[string]string{
		"an unknown status":               `{"todos":[{"content":"a","status":"doing"}]}`,
		"todos is no list":                `{"todos":"nope"}`,
		"todos is null":                   `{"todos":null}`,
		"no todos":                        `{}`,
		"a task that is null":             `{"todos":[null]}`,
		"a task that is a number":         `{"todos":[42]}`,
		"content is a number":             `{"todos":[{"content":42,"status":"pending"}]}`,
		"no content":                      `{"todos":[{"status":"pending"}]}`,
		"empty content":                   `{"todos":[{"content":"","status":"pending"}]}`,
		"content of white space":          `{"todos":[{"content":" \t\n","status":"pending"}]}`,
		"the same content twice":          `{"todos":[{"content":"a","status":"pending"},{"content":" a ","status":"completed"}]}`,
		"an unknown key of a task":        `{"todos":[{"content":"a","status":"pending","id":1}]}`,
		"an unknown key beside the tasks": `{"todos":[],"merge":true}`,
		"two in progress":                 `{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`,
	} {
		r, err := tool(t, single).Call(t.Context(), unit.ToolCall{Arguments: json.RawMessage(args)})
		if err == nil || r.Events != nil || r.Value != nil {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func TestTheConfigDecidesAndHasNoDefault(t *testing.T) {
	if a, b := tool(t, single).Description, tool(t, parallel).Description; a == b || !strings.Contains(a, "At most one") {
		t.Errorf("the descriptions are %q and %q", a, b)
	}
	for config, path := range map[string]string{"": "$.allowParallelInProgress", "{}": "$.allowParallelInProgress", `{"allowParallelInProgress":"no"}`: "$.allowParallelInProgress", `{"allowParallelInProgress":true,"x":1}`: "$.x"} {
		_, err := plugin.Start(sdk.StartOptions{Config: json.RawMessage(config)})
		var refused *sdk.ConfigError
		if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != path {
			t.Errorf("%s: got %v, want a problem at %s", config, err, path)
		}
	}
}

// The promise of the SDK: unit, tool, config and types of a real plugin in 80 lines, not counting comments, blank lines and imports.
func TestThePluginTakesEightyLines(t *testing.T) {
	lines := 0
	for _, file := range []string{"main.go", "tool.go", "todounit/unit.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		imports := false
		for line := range bytes.Lines(text) {
			line := strings.TrimSpace(string(line))
			switch {
			case line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "package "):
			case strings.HasPrefix(line, "import"):
				imports = strings.HasSuffix(line, "(")
			case imports:
				imports = line != ")"
			default:
				lines++
			}
		}
	}
	if lines > 80 {
		t.Errorf("%d lines", lines)
	}
}
