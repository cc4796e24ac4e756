package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// Given more keys than must be kept, then none of them goes before a day is over, and the last 2,000 stay for ever.
func TestOldKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		if _, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "a"}}); err != nil {
			t.Fatal(err)
		}
		add := func(n int) {
			b := eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: []event.Event{{Type: "x", Seq: int64(n), Data: []byte("1")}}, Key: fmt.Sprint(n), Digest: "d"}
			if _, err := s.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		known := func(n int) bool {
			_, ok, err := s.Lookup(t.Context(), eventlog.Life{ID: "a"}, fmt.Sprint(n))
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		for n := range 2500 {
			add(n)
		}
		time.Sleep(24 * time.Hour)
		add(2500)
		if !known(0) {
			t.Error("forgotten within a day")
		}
		time.Sleep(time.Millisecond)
		add(2501)
		if known(0) || known(501) || !known(502) || !known(2501) {
			t.Errorf("known are 0: %v, 501: %v, 502: %v, 2501: %v", known(0), known(501), known(502), known(2501))
		}
	})
}
