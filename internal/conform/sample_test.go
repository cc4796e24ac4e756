package conform

import (
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

// The sample is a log that any host would accept.
func TestTheSampleIsALog(t *testing.T) {
	events := Sample()
	if len(events) < 10 {
		t.Fatalf("%d events", len(events))
	}
	state, err := surface.Fold(func(yield func(event.Draft) bool) {
		for i := range events {
			if err := event.CheckShape(&events[i]); err != nil {
				t.Errorf("event %d: %v", i, err)
			}
			if !yield(event.Draft{Event: events[i]}) {
				return
			}
		}
	})
	if err != nil || len(state.Nodes) != 1 || state.ReplaceGeneration != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}
