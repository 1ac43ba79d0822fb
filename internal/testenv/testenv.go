// Package testenv tells tests how they are run, lets them wait, and builds the program.
//
// Three commands choose what runs: make test is go test -short, make check leaves out
// -short, and make soak sets ANIMALSTORE_SOAK. CI=true fails a test that this machine
// can't run.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Deadline is how long any test waits for something that must happen. It is generous,
// because a test that passes never waits that long: a new machine compiles for minutes.
const Deadline = 5 * time.Minute

// Eventually waits until done returns true. It is for what happens in another process:
// a test can be told of everything else.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > Deadline {
			t.Fatalf("waited %s in vain: %s", Deadline, what)
		}
	}
}

// Build builds animalstore in dir and returns its path. It is a plain build, which runs many
// times faster than one with the race detector, and finds in the cache what go test has
// compiled without it.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "animalstore")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "animalstore/cmd/animalstore").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build animalstore: %v\n%s", err, out)
	}
	return program, nil
}

// Soak is whether make soak runs the tests, for hours.
var Soak = os.Getenv("ANIMALSTORE_SOAK") != ""

// Count returns the larger count in a soak.
func Count(usual, soak int) int {
	if Soak {
		return soak
	}
	return usual
}

// Slow skips a test of make check in make test.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs in make check, without -short")
	}
}

// OnlySoak skips a test that takes many minutes, or needs more than two cores to be
// reliable.
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
		Missing(t, "%s is not installed: make check installs it as root with apt-get", program)
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
