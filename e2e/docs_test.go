package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// documents are those whose commands are run: the README first, and everything in
// docs.
func documents(t *testing.T, root string) (names []string) {
	t.Helper()
	names = []string{"README.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
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

// TestDocuments runs the commands of each guide, in what a reader has after cloning and
// building. The README is for TestFreshClone.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t, "..")[1:] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tryDocument(t, name, string(text), workingCopy) {
				t.Errorf("%s:%s", name, p)
			}
		})
	}
}

// TestFreshClone runs the README's commands where nothing was built before.
func TestFreshClone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tryDocument(t, "README.md", string(text), clone) {
		t.Errorf("README.md:%s", p)
	}
}

// tryDocument runs a document in the directory that prepare creates, and returns what
// went wrong.
func tryDocument(t *testing.T, name, text string, prepare func(*testing.T) string) []string {
	t.Helper()
	blocks, problems := readBlocks(text)
	scratch := t.TempDir()
	program := filepath.Join(scratch, "fragments")
	steps, fragments, more := plan(blocks, program)
	if problems = append(problems, more...); problems != nil {
		return problems
	}
	for _, b := range blocks {
		if reason, ok := b.exempt(); ok {
			t.Logf("%s:%d is not run:%s", name, b.line-1, reason)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	for _, step := range steps {
		for _, tool := range []string{"curl", "openssl", "redis-server", "sqlite3"} {
			if regexp.MustCompile(`\b` + tool + `\b`).MatchString(step.script) {
				needs(t, tool)
			}
		}
	}
	needs(t, "bash")
	moduleGraph()
	if len(fragments) > 0 {
		if err := buildFragments(name, fragments, scratch, program); err != nil {
			return []string{" " + err.Error()}
		}
	}
	w := walkthrough{dir: prepare(t), scratch: scratch, steps: steps}
	if strings.Contains(text, documentedPostgres) {
		w.before = providePostgres(t)
	}
	return w.run(t)
}

// moduleGraph makes Go fetch what it may need to know of modules that are not
// built, while there is a network: a session has none.
var moduleGraph = sync.OnceFunc(func() { exec.Command("go", "list", "-m", "all").Run() })

// git runs git on this repository, whoever owns it.
func git(t *testing.T, args ...string) string {
	t.Helper()
	needs(t, "git")
	config := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(config, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+config)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// clone creates what a reader has after git clone.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "animalstore")
	git(t, "clone", "--quiet", ".", dir)
	return dir
}

// workingCopy creates a clone that includes uncommitted changes and the binary.
func workingCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "animalstore")
	names := git(t, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		copyInto(t, filepath.Join("..", name), filepath.Join(dir, name))
	}
	copyInto(t, binary, filepath.Join(dir, "bin", "animalstore"))
	return dir
}

func copyInto(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return // removed, but not in git yet
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, info.Mode())
	}
	if err != nil {
		t.Fatal(fmt.Errorf("copy %s: %w", from, err))
	}
}
