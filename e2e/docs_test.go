package e2e

import (
	"fmt"
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

// documents are the documents whose commands are run: the README first, then everything
// in docs.
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

// readingOrder are the documents meant to be followed one after the other. The others
// come after them.
var readingOrder = []string{"README.md", "docs/quickstart.md", "docs/callers.md", "docs/operations.md", "docs/scaling.md"}

// TestDocuments follows all documents, one after the other, in one clone where nothing
// has been built. Files that one guide leaves behind must not break the next.
func TestDocuments(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	all := documents(t, "..")
	for _, name := range readingOrder {
		if !slices.Contains(all, name) {
			t.Fatalf("there is no %s", name)
		}
	}
	names := slices.Clone(readingOrder)
	for _, name := range all {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	dir := clone(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tryDocument(t, name, string(text), func(*testing.T) string { return dir }) {
				t.Errorf("%s:%s", name, p)
			}
		})
	}
	built := onlyLine(t, filepath.Join(dir, "bin", "animalstore"), "version")
	commit := strings.TrimSpace(gitIn(t, dir, "describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty=.modified"))
	if strings.Contains(built, "-dev") && !strings.HasSuffix(built, "-dev+"+commit) {
		t.Errorf("the program that the documents build is %q, want the commit %s in it", built, commit)
	}
}

func onlyLine(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// TestOneBuildCommand: a reader who follows several documents builds once.
func TestOneBuildCommand(t *testing.T) {
	t.Parallel()
	for _, name := range append(documents(t, ".."), "CONTRIBUTING.md") {
		text := contents(filepath.Join("..", name))
		for _, other := range []string{"go build", "go install", "go run ./cmd"} {
			if strings.Contains(text, other) {
				t.Errorf("%s has %q, want make build", name, other)
			}
		}
		if strings.Contains(text, "```sh\nbin/animalstore") && !strings.Contains(text, "make build") {
			t.Errorf("%s runs the program, but never builds it with make build", name)
		}
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
				testenv.Need(t, tool)
			}
		}
	}
	testenv.Need(t, "bash")
	moduleGraph()
	if len(fragments) > 0 {
		if err := buildFragments(name, fragments, scratch, program); err != nil {
			return []string{" " + err.Error()}
		}
	}
	buildPythonFragments(t, blocks, program+".py")
	if err := writeModules(t, blocks, scratch); err != nil {
		return []string{" " + err.Error()}
	}
	w := walkthrough{dir: prepare(t), scratch: scratch, steps: steps}
	if strings.Contains(text, documentedPostgres) {
		w.before = providePostgres(t)
	}
	return w.run(t)
}

// moduleGraph makes Go fetch information about modules that aren't built while there is
// a network, because a session has none.
var moduleGraph = sync.OnceFunc(func() { exec.Command("go", "list", "-m", "all").Run() })

// git runs git on this repository.
func git(t *testing.T, args ...string) string {
	t.Helper()
	return gitIn(t, "..", args...)
}

// gitIn runs git on a repository that another user may own.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	testenv.Need(t, "git")
	config := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(config, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+config)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
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

func copyInto(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) { // removed, but not in git yet
		os.Remove(to)
		return
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
