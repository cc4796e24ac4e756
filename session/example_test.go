package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

func Example() {
	store := memory.New()
	defer store.Close()
	set := session.NewSet(store, session.Options{})
	defer set.Close()
	ctx := context.Background()

	s, err := set.Create(ctx, session.New{Header: event.Header{ID: "demo", CWD: "/work"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A message goes on the surface; any other type is only logged.
	hello := json.RawMessage(`{"id":"m1","role":"user","content":[{"type":"text","text":"hello"}],"source":{"kind":"user"}}`)
	if _, err := s.Append(ctx, event.UserMessage, hello, session.Intent{Op: event.Append()}); err != nil {
		fmt.Println(err)
		return
	}
	ev, err := s.Append(ctx, "todo/write", map[string]any{"todos": []string{}}, session.Intent{})
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := s.Messages(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("last seq", ev.Seq, "messages", len(messages))
	// Output: last seq 1 messages 1
}

func ExampleSet_AddHook() {
	set := session.NewSet(memory.New(), session.Options{})
	defer set.Close()
	ctx := context.Background()
	remove := set.AddHook(func(_ context.Context, _ *session.Session, events []event.Event) error {
		for _, ev := range events {
			if ev.Type == "todo/write" {
				return errors.New("todos are closed for today")
			}
		}
		return nil
	})
	defer remove()

	s, err := set.Create(ctx, session.New{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Append(ctx, "todo/write", map[string]any{"todos": []string{}}, session.Intent{})
	var veto *session.VetoError
	fmt.Println(errors.As(err, &veto), veto.Err)
	// Output: true todos are closed for today
}
