package host

import "runtime/debug"

// Version is the version of the program that foldhost is built into, as the go command wrote it into the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
