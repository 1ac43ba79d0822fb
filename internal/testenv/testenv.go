// Package testenv tells tests how they are run.
//
// go test -short leaves out slow tests. Nothing else chooses tests: make soak runs all of
// them with larger counts, and CI=true fails a test that this machine can't run.
package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// Soak is whether make soak runs the tests, for hours.
var Soak = os.Getenv("ANIMALSTORE_SOAK") != ""

// Count returns the larger count in a soak.
func Count(usual, soak int) int {
	if Soak {
		return soak
	}
	return usual
}

// Slow skips a slow test in a short run.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: run it without -short")
	}
}

// OnlySoak skips a test of which a smaller version would check nothing.
func OnlySoak(t testing.TB, why string) {
	t.Helper()
	if !Soak {
		t.Skip(why + ": only make soak runs this")
	}
}

// Need skips a test that runs a program that isn't installed.
func Need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		Missing(t, "%s is not installed: run scripts/setup", program)
	}
}

// Missing skips a test that this machine can't run. In CI it fails it: nobody would
// notice a test that is always skipped there.
func Missing(t testing.TB, why string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(why, args...)
	}
	t.Skipf(why, args...)
}
