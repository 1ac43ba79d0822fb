package conformance

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

const typescriptDir = "../typescript"

// startTypeScript starts the adapter for TypeScript.
func startTypeScript(t testing.TB) *adapter {
	t.Helper()
	buildTypeScript(t)
	return startProcess(t, "typescript", typescriptDir, "node", "test/adapter.js")
}

// buildTypeScript compiles the package into its directory, once.
func buildTypeScript(t testing.TB) {
	t.Helper()
	testenv.Need(t, "node")
	testenv.Need(t, "npm")
	if err := runIn(".", "node", "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"); err != nil {
		testenv.Missing(t, "the client for TypeScript needs Node 20: make check installs it as root with apt-get")
	}
	if err := typescriptBuild(); err != nil {
		t.Fatal(err)
	}
}

var typescriptBuild = sync.OnceValue(func() error { return runIn(typescriptDir, "./build") })

// runIn runs a program in a directory. Its error contains the output.
func runIn(dir string, argv ...string) error {
	_, err := outputIn(dir, argv...)
	return err
}

func outputIn(dir string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &commandError{filepath.Base(argv[0]) + " " + strings.Join(argv[1:], " "), string(out), err}
	}
	return string(out), nil
}

// commandError is the failure of a program, with what it printed.
type commandError struct {
	command, output string
	err             error
}

func (e *commandError) Error() string { return e.command + ": " + e.err.Error() + "\n" + e.output }

func (e *commandError) Unwrap() error { return e.err }
