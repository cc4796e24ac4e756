// Command embed is foldhost inside a program: a plugin of its own, a session, a snapshot, and the feed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// Message is what the words unit reads of a user/message; other fields are none of its business.
type Message struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// words is a unit of our own: how many words the user has said. The state is a number, and the number is what clients see.
var words = sdk.ProjectionDefinition[int, int]{
	Key:          "words",
	StateVersion: 1,
	On: sdk.Handlers[int]{
		event.UserMessage: sdk.On(func(n int, m Message) int {
			for _, block := range m.Content {
				n += len(strings.Fields(block.Text))
			}
			return n
		}),
	},
	View: sdk.Same[int],
}

// assistant is the plugin of this program. As a program of its own, its main would be sdk.Serve(assistant).
var assistant = sdk.Plugin{
	Name:  "assistant",
	Owns:  []sdk.OwnedEvent{sdk.Owns[todounit.Write](todounit.WriteType)},
	Units: []sdk.Unit{todounit.Projection, words},
}

func run(ctx context.Context, out io.Writer) error {
	h := host.New(host.Options{}) // Everything in memory.
	defer h.Close()
	running, err := assistant.Start(sdk.StartOptions{})
	if err != nil {
		return err
	}
	defer running.Stop(ctx)
	remove, err := h.Add(host.Resident{Name: assistant.Name, Events: running.Events(), Units: running.Units(), Tools: running.Tools()})
	if err != nil {
		return err
	}
	defer remove()

	// The feed says what changed, with the seq of the event that caused it. A listener that is slow gets the latest value of each key.
	todos := make(chan registry.Change, 16)
	defer h.Registry().OnChange(func(c registry.Change) {
		if c.Key == "todos" {
			todos <- c
		}
	})()

	s, err := h.Sessions().Create(ctx, session.New{Header: event.Header{ID: "embedded", CWD: "/home/ada"}})
	if err != nil {
		return err
	}
	// An append returns once the event is in the log and every unit in this process has folded it.
	if _, err := s.Append(ctx, event.TurnStart, map[string]int{"turn": 1}, session.Intent{}); err != nil {
		return err
	}
	hello := map[string]any{
		"id": "m1", "role": "user", "source": map[string]string{"kind": "user"},
		"content": []map[string]string{{"type": "text", "text": "please water the plants"}},
	}
	if _, err := s.Append(ctx, event.UserMessage, hello, session.Intent{Op: event.Append()}); err != nil {
		return err
	}
	list := todounit.Write{Todos: todounit.Todos{{Content: "water the plants", Status: todounit.InProgress}}}
	written, err := s.Append(ctx, todounit.WriteType, list, session.Intent{})
	if err != nil {
		return err
	}

	// One cut: all values are as of the same seq.
	block, err := h.Snapshot(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "as of seq %d\n  todos %s\n  words %s\n", block.AsOfSeq, block.Values["todos"], block.Values["words"])

	for c := range todos {
		if c.Seq == written.Seq {
			fmt.Fprintf(out, "the feed said: %s is %s since seq %d\n", c.Key, c.Value, c.Seq)
			break
		}
	}

	// An event that breaks a rule is refused and leaves no trace.
	_, err = s.Append(ctx, event.UserMessage, map[string]string{"text": "no id, no role"}, session.Intent{Op: event.Append()})
	fmt.Fprintf(out, "refused: %v\n", err)
	// So is one of a plugin's type that is not what the plugin says it is.
	_, err = s.Append(ctx, todounit.WriteType, map[string]string{"todos": "water the plants"}, session.Intent{})
	fmt.Fprintf(out, "refused: %v\n", err)
	return nil
}
