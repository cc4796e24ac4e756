package memory_test

import (
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

func TestStore(t *testing.T) {
	logtest.Run(t, func(testing.TB) eventlog.Store { return memory.New() })
}

func TestRows(t *testing.T) {
	logtest.RunRows(t, func(testing.TB) logtest.RowStore { return memory.New() })
}
