package torture

import (
	"testing"

	"github.com/foldhost/foldhost/eventlog/sqlite"
)

// check asks the store itself.
func check(*testing.T, *sqlite.Store) {}
