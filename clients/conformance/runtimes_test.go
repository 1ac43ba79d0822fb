package conformance

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

// TestRuntimes runs the scenarios and the walk with the client for TypeScript in the
// runtimes besides Node.
func TestRuntimes(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for name, argv := range map[string][]string{
		"deno": {"run", "--allow-all", "test/adapter.js"},
		"bun":  {"run", "test/adapter.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buildTypeScript(t)
			argv := append([]string{runtimePath(t, name)}, argv...)
			a := startProcess(t, name, typescriptDir, argv...)
			t.Run("walk", func(t *testing.T) {
				t.Parallel()
				runWalk(t, a)
			})
			runScenarios(t, a)
		})
	}
}

// runtimePath is the path of a runtime. npm installs Deno and Bun.
func runtimePath(t testing.TB, name string) string {
	t.Helper()
	if name == "node" {
		return name
	}
	if err := installRuntimes(); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join(runtimesDir, "node_modules", runtimes[name]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		testenv.Missing(t, "%s isn't pinned for this platform", name)
	}
	return path
}

var runtimes = map[string]string{"deno": "@deno/linux-x64-glibc/deno", "bun": ".bin/bun"}

const runtimesDir = typescriptDir + "/runtimes"

// installRuntimes installs the runtimes that package-lock.json names, unless that was done
// before.
var installRuntimes = sync.OnceValue(func() error {
	return runIn(runtimesDir, "sh", "-c", "cmp -s package-lock.json node_modules/.installed-lock.json ||"+
		" { npm ci --silent --no-audit --no-fund && cp package-lock.json node_modules/.installed-lock.json; }")
})
