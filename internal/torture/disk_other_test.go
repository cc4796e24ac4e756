//go:build !linux

package torture

import (
	"errors"
	"testing"
)

// limitFiles is for Linux alone.
func limitFiles(bytes string) error {
	if bytes != "" {
		return errors.ErrUnsupported
	}
	return nil
}

func smallDisk(t *testing.T, _ string) string {
	t.Skip("skipped: this harness knows how to mount a small disk on Linux only")
	return ""
}
