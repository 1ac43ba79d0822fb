package conformance

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

const typescriptDir = "../typescript"

// startTypeScript starts the adapter for TypeScript. make interop sets
// ANIMALSTORE_JS_RUNTIME, to run it in others than Node.
func startTypeScript(t testing.TB) *adapter {
	t.Helper()
	buildTypeScript(t)
	runtime := strings.Fields(cmp.Or(os.Getenv("ANIMALSTORE_JS_RUNTIME"), "node"))
	return startProcess(t, "typescript", typescriptDir, append(runtime, "test/adapter.js")...)
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
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}
