package conformance

import (
	"bytes"
	"os"
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
	if err := typescriptBuild(); err != nil {
		t.Fatal(err)
	}
}

var typescriptBuild = sync.OnceValue(func() error {
	if err := installPackages(typescriptDir); err != nil {
		return err
	}
	return runIn(typescriptDir, "npm", "run", "--silent", "build")
})

// installPackages installs what a package-lock.json names, unless that was done before.
func installPackages(dir string) error {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	done := filepath.Join(dir, "node_modules", ".installed-lock.json")
	if installed, err := os.ReadFile(done); err == nil && bytes.Equal(installed, lock) {
		return nil
	}
	if err := runIn(dir, "npm", "ci", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	return os.WriteFile(done, lock, 0o644)
}

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
