package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
)

// A whole life of a session: a unit, a veto, a value now and then, a fork, a compaction, a turn that was cut off.
func Example() {
	if err := lifeOfASession(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// refused: no secrets
	// as of seq 4: 2 of 2 said
	// as of seq 1: 1 of 1 said
	// the child has 2 messages, the parent 1 after compaction
	// recovered: turn/end
}

func lifeOfASession(ctx context.Context) error {
	h := host.New(host.Options{}) // Everything in memory.
	defer h.Close()

	// A unit: what is kept, and what is shown.
	said := sdk.ProjectionDefinition[int, string]{
		Key:          "said",
		StateVersion: 1,
		On:           sdk.Handlers[int]{event.UserMessage: sdk.On(func(n int, _ any) int { return n + 1 })},
		View:         func(n int) string { return fmt.Sprintf("%d of %d said", n, n) },
	}
	def, err := said.Definition()
	if err != nil {
		return err
	}
	registration, err := h.Register("example", def)
	if err != nil {
		return err
	}
	defer registration.Release()

	// A hook may veto before anything is logged.
	defer h.Sessions().AddHook(func(_ context.Context, _ *session.Session, events []event.Event) error {
		for _, ev := range events {
			if ev.Type == "secret" {
				return errors.New("no secrets")
			}
		}
		return nil
	})()

	s, err := h.Sessions().Create(ctx, session.New{})
	if err != nil {
		return err
	}
	say := func(id, text string) map[string]any {
		return map[string]any{"id": id, "role": "user", "source": map[string]string{"kind": "user"},
			"content": []map[string]string{{"type": "text", "text": text}}}
	}
	turn := func(n int) error {
		_, err := s.Append(ctx, event.TurnStart, map[string]int{"turn": n}, session.Intent{})
		return err
	}
	if err := turn(1); err != nil {
		return err
	}
	first, err := s.Append(ctx, event.UserMessage, say("m1", "hello"), session.Intent{Op: event.Append()})
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, "secret", 42, session.Intent{})
	var veto *session.VetoError
	if !errors.As(err, &veto) {
		return fmt.Errorf("it was not refused: %w", err)
	}
	fmt.Println("refused:", veto.Err)
	second, err := s.Append(ctx, event.UserMessage, say("m2", "are you there?"), session.Intent{Op: event.Append()})
	if err != nil {
		return err
	}
	reason := map[string]any{"turn": 1, "reason": map[string]string{"kind": "completed"}}
	if _, err := s.Append(ctx, event.TurnEnd, reason, session.Intent{}); err != nil {
		return err
	}
	if err := turn(2); err != nil {
		return err
	}

	// Values are JSON, all as of one seq: the last, or any before it.
	show := func(seq int64, value json.RawMessage) {
		var text string
		if json.Unmarshal(value, &text) == nil {
			fmt.Printf("as of seq %d: %s\n", seq, text)
		}
	}
	now, err := h.Snapshot(ctx, s)
	if err != nil {
		return err
	}
	show(now.AsOfSeq, now.Values["said"])
	then, err := h.SnapshotAt(ctx, s, first.Seq)
	if err != nil {
		return err
	}
	show(then.AsOfSeq, then.Values["said"])

	// A fork ends outside of turns; ForkTurn finds the end of the last one that is complete.
	child, err := h.Sessions().ForkTurn(ctx, s.ID(), session.TurnFork{})
	if err != nil {
		return err
	}
	if _, err := s.Compact(ctx, first.Seq, second.Seq, say("sum", "they said hello")); err != nil {
		return err
	}
	theirs, err := child.Messages(ctx)
	if err != nil {
		return err
	}
	ours, err := s.Messages(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("the child has %d messages, the parent %d after compaction\n", len(theirs), len(ours))

	// Whoever knows that the program which owned the turn is gone closes it.
	closers, err := s.Recover(ctx)
	if err != nil {
		return err
	}
	for _, ev := range closers {
		fmt.Println("recovered:", ev.Type)
	}
	return nil
}
