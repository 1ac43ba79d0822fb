package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

// documents are the guides in docs.
func documents(t *testing.T) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(".."), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 5 {
		t.Fatalf("got %d documents and error %v, want them all", len(names), err)
	}
	return names
}

// TestReadme follows the README in a clone where nothing has been built.
func TestReadme(t *testing.T) {
	t.Parallel()
	tryDocument(t, "README.md")
}

// TestDocuments_Slow follows the guides, each in its own clone.
func TestDocuments_Slow(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tryDocument(t, name)
		})
	}
}

// tryDocument runs the blocks of a document as a reader does.
func tryDocument(t *testing.T, name string) {
	t.Helper()
	blocks, problems := readBlocks(string(mustRead(t, filepath.Join("..", name))))
	scratch := t.TempDir()
	program := filepath.Join(scratch, "fragments")
	steps, fragments, more := plan(blocks, program)
	for _, p := range append(problems, more...) {
		t.Errorf("%s:%s", name, p)
	}
	if len(steps) == 0 || t.Failed() {
		return
	}
	for _, step := range steps {
		for _, tool := range []string{"curl", "openssl", "redis-server", "sqlite3"} {
			if regexp.MustCompile(`\b` + tool + `\b`).MatchString(step.script) {
				testenv.Need(t, tool)
			}
		}
	}
	testenv.Need(t, "bash")
	moduleGraph()
	if len(fragments) > 0 {
		buildFragments(t, name, fragments, scratch, program)
	}
	buildPythonFragments(t, blocks, program+".py")
	writeModules(t, blocks, scratch)
	w := walkthrough{dir: clone(t), scratch: scratch, steps: steps}
	if slices.ContainsFunc(steps, func(s step) bool { return strings.Contains(s.script, documentedPostgres) }) {
		w.postgres = startDocumentedPostgres(t)
	}
	for _, p := range w.run(t) {
		t.Errorf("%s:%s", name, p)
	}
}

// moduleGraph makes Go fetch information about modules that aren't built while there is
// a network, because a session has none.
var moduleGraph = sync.OnceFunc(func() { exec.Command("go", "list", "-m", "all").Run() })

// git runs git on this repository, which another user may own.
func git(t *testing.T, args ...string) string {
	t.Helper()
	testenv.Need(t, "git")
	config := mustWrite(t, filepath.Join(t.TempDir(), "gitconfig"), "[safe]\n\tdirectory = *\n", 0o600)
	cmd := exec.Command("git", args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+config)
	return output(t, cmd)
}

// clone creates a clone with uncommitted changes, in a directory with an unpredictable
// name.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "our store")
	git(t, "clone", "--quiet", ".", dir)
	names := git(t, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if name != "" {
			copyInto(t, filepath.Join("..", name), filepath.Join(dir, name))
		}
	}
	return dir
}

// copyInto copies a file, and removes its copy if there is no such file.
func copyInto(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		os.Remove(to)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, to, string(mustRead(t, from)), info.Mode())
}
