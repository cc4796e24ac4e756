package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestADrainWaitsForAllThatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight
		for range 2 {
			if !f.enter() {
				t.Fatal("nothing may enter")
			}
		}
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- f.close(t.Context()) }()
		}
		synctest.Wait()
		if f.enter() {
			t.Error("something entered after the close")
		}
		f.leave()
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("closed with one in flight")
		}
		f.leave()
		for range 2 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		if err := f.close(t.Context()); err != nil {
			t.Errorf("closed once more: %v", err)
		}
	})
}

func TestADrainEndsWithItsCaller(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	var f flight
	f.enter()
	if err := f.close(ctx); err != enough {
		t.Errorf("got %v", err)
	}
}
