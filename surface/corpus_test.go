package surface_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/corpus"
	"github.com/foldhost/foldhost/surface"
)

func TestSurfacesOfRecordedLogs(t *testing.T) {
	for _, l := range corpus.Logs(t) {
		drafts := make([]event.Draft, len(l.Events))
		for i, line := range l.Events {
			var err error
			if drafts[i], err = event.DecodeDraft(line, 0); err != nil {
				t.Fatalf("%s: event %d: %v", l.Name, i, err)
			}
		}
		state, err := both(t, drafts)
		if err != nil {
			t.Errorf("%s: %v", l.Name, err)
			continue
		}
		want := l.Surface
		if !slices.Equal(state.Nodes, want.Nodes) || state.ReplaceGeneration != want.ReplaceGeneration {
			t.Errorf("%s: nodes %v at %d, want %v at %d", l.Name, state.Nodes, state.ReplaceGeneration, want.Nodes, want.ReplaceGeneration)
		}
		var history []corpus.Replacement
		for _, r := range state.Replacements {
			history = append(history, corpus.Replacement(r))
		}
		if fmt.Sprint(history) != fmt.Sprint(want.Replacements) {
			t.Errorf("%s: replacements %v, want %v", l.Name, history, want.Replacements)
		}
	}
}

// replay reads a log as a reader of logs does and returns where and why it is refused.
func replay(l corpus.InvalidLog) error {
	if _, err := event.DecodeHeader(l.Header); err != nil {
		return &event.IndexError{Index: event.HeaderIndex, Err: err}
	}
	var events []event.Event
	m := surface.NewManager(0, func(seq int64) (event.Event, error) { return events[seq], nil })
	for i, line := range l.Events {
		d, err := event.DecodeDraft(line, 0)
		if err == nil {
			err = event.CheckShape(&d.Event)
		}
		var p surface.Plan
		if err == nil {
			p, err = m.Plan(&d)
		}
		if err != nil {
			return &event.IndexError{Index: int64(i), Err: err}
		}
		m.Apply(p)
		events = append(events, d.Event)
	}
	return nil
}

func TestInvalidLogsAreRefusedWhereAndForWhatTheyShould(t *testing.T) {
	for _, l := range corpus.Invalid(t) {
		t.Run(l.File, func(t *testing.T) {
			err := replay(l)
			if l.Valid {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			want := int64(event.HeaderIndex)
			if l.Index != nil {
				want = *l.Index
			}
			var at *event.IndexError
			var refused *event.Error
			if !errors.As(err, &at) || !errors.As(err, &refused) || at.Index != want || string(refused.Code) != l.Code {
				t.Fatalf("got %v, want %s at %d", err, l.Code, want)
			}
		})
	}
}
