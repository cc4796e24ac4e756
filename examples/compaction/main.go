// Command compaction shows two things that every agent with a long memory needs, each as one line over a session: replacing a range of
// messages by a summary, and asking whether context that was put in once can still be seen.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compaction:", err)
		os.Exit(1)
	}
}

// compact replaces the messages from one seq to another by a summary. Nothing is lost: the events stay in the log, the surface shows one instead.
func compact(ctx context.Context, s *session.Session, start, end int64, summary any) (event.Event, error) {
	return s.Compact(ctx, start, end, summary)
}

// visible says whether the model still sees the event: whether its seq is among the nodes of the surface.
func visible(ctx context.Context, s *session.Session, seq int64) (bool, error) {
	return s.Surface().Contains(ctx, seq)
}

// says is a message of the user, or on the user's behalf.
func says(id, kind, text string) map[string]any {
	return map[string]any{
		"id": id, "role": "user", "source": map[string]string{"kind": kind},
		"content": []map[string]string{{"type": "text", "text": text}},
	}
}

func run(ctx context.Context, out io.Writer) error {
	h := host.New(host.Options{})
	defer h.Close()
	s, err := h.Sessions().Create(ctx, session.New{Header: event.Header{ID: "long"}})
	if err != nil {
		return err
	}
	// inject puts the instructions of a project where the model sees them, unless it still does.
	injected := int64(-1)
	inject := func() error {
		seen, err := visible(ctx, s, injected)
		if err != nil || seen {
			return err
		}
		ev, err := s.Append(ctx, event.UserMessage, says("rules", "instructions", "Run the tests."), session.Intent{Op: event.Append()})
		injected = ev.Seq
		fmt.Fprintf(out, "instructions injected at seq %d\n", injected)
		return err
	}

	if err := inject(); err != nil {
		return err
	}
	var last event.Event
	for i := range 5 {
		if last, err = s.Append(ctx, event.UserMessage, says(fmt.Sprint("m", i), "user", "and another thing"), session.Intent{Op: event.Append()}); err != nil {
			return err
		}
		if err := inject(); err != nil { // Still visible: does nothing.
			return err
		}
	}
	if _, err := compact(ctx, s, injected, last.Seq, says("summary", "compaction", "Five more things, all done.")); err != nil {
		return err
	}
	if err := inject(); err != nil { // Compacted away: visible again.
		return err
	}

	state, err := s.Surface().State(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the model sees %v as of seq %d\n", state.Nodes, state.AsOfSeq)
	return nil
}
