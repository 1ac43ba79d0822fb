package conformance

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

const pythonDir = "../python"

// startPython starts the adapter for Python's Client.
func startPython(t testing.TB) *adapter {
	t.Helper()
	return startPythonAdapter(t, "python")
}

// startPythonAsync starts the adapter for Python's AsyncClient.
func startPythonAsync(t testing.TB) *adapter {
	t.Helper()
	return startPythonAdapter(t, "python-async", "--async")
}

func startPythonAdapter(t testing.TB, name string, flags ...string) *adapter {
	t.Helper()
	p := buildPython(t)
	return startProcess(t, name, pythonDir, append([]string{p.installed, "tests/adapter.py"}, flags...)...)
}

// pythonPackage is the package for Python as it was built for the tests.
type pythonPackage struct {
	python    string // the interpreter, with the packages that the client needs
	dir       string // the wheel, the source archive and source/, what they are made from
	installed string // an interpreter with the wheel, as users install it
}

// buildPython builds the package, once.
func buildPython(t testing.TB) pythonPackage {
	t.Helper()
	testenv.Need(t, "python3")
	p, err := pythonBuild()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var pythonBuild = sync.OnceValues(func() (p pythonPackage, err error) {
	if p.python, err = filepath.Abs(pythonDir + "/.venv/bin/python"); err != nil {
		return p, err
	}
	if err := runIn(pythonDir, "python3", "tools/environment.py", "requirements.txt"); err != nil {
		return p, err
	}
	p.dir = filepath.Join(workDir, "python")
	if err := runIn(pythonDir, p.python, "tools/build.py", p.dir); err != nil {
		return p, err
	}
	wheels, err := filepath.Glob(filepath.Join(p.dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return p, fmt.Errorf("got wheels %v, %w, want one", wheels, err)
	}
	venv := filepath.Join(workDir, "venv")
	if err := runIn(workDir, "python3", "-m", "venv", "--without-pip", venv); err != nil {
		return p, err
	}
	p.installed = filepath.Join(venv, "bin", "python")
	return p, runIn(pythonDir, p.python, "-m", "pip", "--python", p.installed, "install", "--quiet",
		"--disable-pip-version-check", "--constraint", "requirements.txt", wheels[0])
})

// TestPythonGenerated_Slow: the committed files are what the generator writes.
func TestPythonGenerated_Slow(t *testing.T) {
	t.Parallel()
	p := buildPython(t)
	dir := t.TempDir()
	mustRun(t, pythonDir, p.python, "tools/generate.py", dir)
	for _, name := range []string{"_client.py", "_models.py"} {
		if want := mustRead(t, filepath.Join(dir, name)); !bytes.Equal(mustRead(t, filepath.Join(pythonDir, "src/animalstore", name)), want) {
			t.Errorf("%s is not current: run clients/python/.venv/bin/python clients/python/tools/generate.py", name)
		}
	}
}
