package conformance

import (
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
	argv := append([]string{p.python, "tests/adapter.py"}, flags...)
	return startProcess(t, name, pythonDir, append([]string{"env", "PYTHONPATH=" + p.sources()}, argv...)...)
}

// pythonPackage is the package for Python as it was built for the tests.
type pythonPackage struct {
	python string // the interpreter, with the packages that the client needs
	dir    string // the wheel, the source archive and source/, what they are made from
}

// buildPython builds the package, once.
func buildPython(t testing.TB) pythonPackage {
	t.Helper()
	testenv.Slow(t)
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
	return p, runIn(pythonDir, p.python, "tools/build.py", p.dir)
})

// sources is the directory with the sources, including those that are generated.
func (p pythonPackage) sources() string { return filepath.Join(p.dir, "source", "src") }
