package server

import (
	"runtime"
	"runtime/debug"
)

// The heap of a server is a few megabytes, so under load it would collect garbage
// dozens of times a second. The ballast is memory that is never touched and so
// costs nothing, but counts as heap when the collector decides whether to run. In
// return the collector tolerates less garbage, so that a larger heap doesn't double.
// SQLite's cache of pets counts in the same way, with 4 MiB.
const (
	ballast          = 14 << 20
	garbageTolerated = 25 // percent
)

// TuneMemory is for a process that does nothing but serve. Call release at its end.
// The percentage of garbage is set only if the operator didn't choose one.
func TuneMemory(chosen bool) (release func()) {
	untouched := make([]byte, ballast)
	if !chosen {
		debug.SetGCPercent(garbageTolerated)
	}
	return func() { runtime.KeepAlive(untouched) }
}
