package torture

import (
	"context"
	"testing"

	"github.com/foldhost/foldhost/eventlog/sqlite"
)

// check asks the store itself, down to its pages.
func check(t *testing.T, store *sqlite.Store) {
	t.Helper()
	report, err := store.Check(context.Background(), sqlite.CheckOptions{Pages: true})
	if err != nil {
		t.Fatalf("check the store: %v", err)
	}
	for _, p := range report.Problems {
		t.Errorf("the store says: %v", p)
	}
}
