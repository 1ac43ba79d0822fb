// Package testenv tells tests how they are run, lets them wait, and builds the program.
//
// Three commands choose what runs, by the names of tests: make test skips those that end
// in _Slow, make check runs only those, and make soak runs everything and sets
// ANIMALSTORE_SOAK. CI=true fails a test that this machine can't run.
package testenv

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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
			t.Fatalf("timed out after %s waiting until %s", Deadline, what)
		}
	}
}

// BuildFlags are the environment variables that the Makefile exports. What tests build has
// them too, also when go test is run by hand, so every package is compiled once.
var BuildFlags = []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false"}

// Build builds animalstore in dir, like make build, and returns its path.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "animalstore")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "animalstore/cmd/animalstore")
	build.Env = append(os.Environ(), BuildFlags...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build animalstore: %v\n%s", err, out)
	}
	return program, nil
}

// MostlyWait lets twice as many tests of a package run at once as there are processors,
// because they wait for other processes or for timeouts. TestMain calls it; -parallel
// overrides it.
func MostlyWait() {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
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

// Slow fails a test that make test would run although it needs what only make check
// installs.
func Slow(t testing.TB) {
	t.Helper()
	if top, _, _ := strings.Cut(t.Name(), "/"); !Soak && !strings.HasSuffix(top, "_Slow") {
		t.Fatalf("call it %s_Slow: make test doesn't install what it needs", top)
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
	if program != "bash" && program != "curl" && program != "git" {
		Slow(t)
	}
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
