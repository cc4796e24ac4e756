//go:build !unix

package serve

import "os"

// takeStdout leaves the handle as it is: what prints by os.Stdout is caught, what writes to the handle itself is not.
func takeStdout() (*os.File, error) { return os.Stdout, nil }
