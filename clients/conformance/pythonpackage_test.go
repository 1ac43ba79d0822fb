package conformance

import (
	"archive/zip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestPythonPackage_Slow uses the installed package in an empty directory: the programs in its
// README run against a real server, and mistakes are explained.
func TestPythonPackage_Slow(t *testing.T) {
	t.Parallel()
	p := buildPython(t)
	checkWheel(t, p.file(t, "*.whl"))
	dir := t.TempDir()
	readme := string(mustRead(t, pythonDir+"/README.md"))
	programs := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(programs) != 2 {
		t.Fatalf("the README has %d programs, want 2", len(programs))
	}
	url := startReal(t)
	for i, want := range []string{"Rex has id 1\n1 Rex\n", "1 Rex\n"} {
		program := strings.Replace(programs[i][1], "http://127.0.0.1:8080", url, 1)
		write(t, filepath.Join(dir, "program.py"), program)
		cmd := exec.Command(p.installed, "-W", "error", "program.py")
		cmd.Dir = dir
		cmd.Env = append(withoutSettings(), "ANIMALSTORE_API_KEY="+ownerKey)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("program %d printed %q, %v, want %q", i+1, out, err, want)
		}
	}
	write(t, filepath.Join(dir, "mistakes.py"), string(mustRead(t, pythonDir+"/tests/mistakes.py")))
	mustRun(t, dir, p.installed, "mistakes.py")
	// The source archive builds without the repository.
	mustRun(t, dir, p.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"--no-build-isolation", "--no-deps", "--target", "installed", p.file(t, "*.tar.gz"))
	mustRun(t, dir, "env", "PYTHONPATH=installed", p.python, "-c", "import animalstore; animalstore.Client('http://localhost', 'key').close()")
}

// checkWheel checks that a wheel is for every platform: it has no compiled code, and has
// the marker that tells type checkers to read its types.
func checkWheel(t *testing.T, wheel string) {
	t.Helper()
	if !strings.HasSuffix(wheel, "-py3-none-any.whl") {
		t.Errorf("the wheel is %s, want one for every platform", filepath.Base(wheel))
	}
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	typed := false
	for _, f := range archive.File {
		switch name := path.Base(f.Name); {
		case name == "py.typed":
			typed = true
		case strings.HasSuffix(name, ".py"), strings.Contains(f.Name, ".dist-info/"):
		default:
			t.Errorf("the wheel contains %s", f.Name)
		}
	}
	if !typed {
		t.Error("the wheel lacks py.typed")
	}
}

// TestPythonTypes_Slow checks the sources, and every example for Python that is printed
// somewhere, with ruff and mypy, and in a soak with pyright too.
func TestPythonTypes_Slow(t *testing.T) {
	t.Parallel()
	p := buildPython(t)
	bin := filepath.Dir(p.python)
	mustRun(t, pythonDir, "python3", "tools/environment.py", "requirements.txt", "requirements-check.txt")
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(p.dir, "source"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tests", "tools"} {
		if err := os.CopyFS(filepath.Join(source, name), os.DirFS(filepath.Join(pythonDir, name))); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, pythonDir, filepath.Join(bin, "ruff"), "format", "--check", "--no-cache", "--quiet", ".")
	mustRun(t, source, filepath.Join(bin, "ruff"), "check", "--no-cache", "--quiet", ".")
	examples := filepath.Join(source, "examples")
	if err := os.Mkdir(examples, 0o700); err != nil {
		t.Fatal(err)
	}
	writeBlocks(t, examples, ".py", "python")
	mustRun(t, source, "env", "MYPYPATH=src", filepath.Join(bin, "mypy"), "src", "tests", "tools", "examples")
	if testenv.Soak { // a second opinion
		mustRun(t, pythonDir, "python3", "tools/environment.py", "requirements.txt", "requirements-check.txt", "requirements-soak.txt")
		// The adapter handles JSON of any type, which pyright's strict mode doesn't allow.
		mustRun(t, source, filepath.Join(bin, "pyright"), "--pythonpath", p.python, "src", "tests/users.py", "examples")
	}
}

func mustRun(t *testing.T, dir string, argv ...string) {
	t.Helper()
	if err := runIn(dir, argv...); err != nil {
		t.Fatal(err)
	}
}

// file is the only file of the package that matches a pattern.
func (p pythonPackage) file(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one file %s", found, err, pattern)
	}
	return found[0]
}
