package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/creack/pty"
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

// A document is tested by the fences of its code blocks. This is all they can say:
//
//	sh                     run in the document's shell, at this place
//	sh terminal            the same in a separate terminal; the document continues
//	                       when the server that is started there serves
//	go                     compiled, and run at this place as the body of a function
//	                       with a context, ctx, and a client of the server, c
//	python                 run at this place, with a client of the server, client
//	js                     run with Node at this place, as a module with a client of the
//	                       server, store, and all names of the package animalstore
//	LANG file=NAME         written to this file, at this place
//	LANG output            what the block before it prints; ... is anything
//	json                   parsed
//	text, http, ini        shown
//	LANG not run: REASON   left alone
//
// A document that prints postgres://animalstore@127.0.0.1/ finds an empty server
// there. Every other fence is a mistake, and so is a command in a block that is only
// shown. A sh block without output has to succeed; one with output is judged by it.
type block struct {
	line int    // of its first line of text
	lang string // such as "sh"
	how  string // the rest of the fence
	text string
}

var (
	shown = []string{"text", "http", "ini"}
	// looseFence matches a fence that would be overlooked.
	looseFence = regexp.MustCompile("^[ \t>*-]*(~~~|[ \t>]+```)")
	colours    = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// pasteable matches the start of a line that a reader may want to paste.
	pasteable = regexp.MustCompile(`(?m)^(\$|animalstore|bin/animalstore|cp|curl|git|go|make|sqlite3|sudo|systemctl) `)
)

// readBlocks finds the code blocks of a document.
func readBlocks(document string) (blocks []block, problems []string) {
	var open *block
	for i, line := range strings.SplitAfter(document, "\n") {
		info, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && open == nil:
			lang, how, _ := strings.Cut(info, " ")
			open = &block{line: i + 2, lang: lang, how: how}
		case fence && info != "":
			problems = append(problems, fmt.Sprintf("%d: a block starts inside another one", i+1))
		case fence:
			blocks, open = append(blocks, *open), nil
		case looseFence.MatchString(line):
			problems = append(problems, fmt.Sprintf("%d: a fence is ``` at the beginning of the line", i+1))
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		problems = append(problems, fmt.Sprintf("%d: the block does not end", open.line-1))
	}
	return blocks, problems
}

// exempt returns the reason why a block isn't run.
func (b block) exempt() (reason string, ok bool) { return strings.CutPrefix(b.how, "not run:") }

// file returns the name of the file for a block.
func (b block) file() (name string, ok bool) { return strings.CutPrefix(b.how, "file=") }

// isFragment reports whether a block is part of a program.
func (b block) isFragment() bool {
	return (b.lang == "go" || b.lang == "js" || b.lang == "python") && b.how == ""
}

// problem says what is wrong with a block, or "" if nothing is.
func (b block) problem() string {
	if reason, ok := b.exempt(); ok {
		if strings.TrimSpace(reason) == "" {
			return "the reason is missing: write \"not run: REASON\""
		}
		return ""
	}
	if name, ok := b.file(); ok {
		if name == "" || strings.ContainsAny(name, " '") {
			return "the name of the file is missing: write \"file=NAME\""
		}
		return ""
	}
	if b.lang != "" && b.how == "output" || b.lang == "sh" && (b.how == "" || b.how == "terminal") || b.isFragment() {
		return ""
	}
	switch {
	case b.lang == "json" && b.how == "":
		var value any
		if err := json.Unmarshal([]byte(b.text), &value); err != nil {
			return fmt.Sprintf("this isn't valid JSON: %v", err)
		}
		return ""
	case slices.Contains(shown, b.lang) && b.how == "":
		if found := pasteable.FindString(b.text); found != "" {
			return fmt.Sprintf("%q is a command, but this block is not run: make it sh", found)
		}
		return ""
	}
	return fmt.Sprintf("no rule for a block %q", strings.TrimSpace("```"+b.lang+" "+b.how))
}

// step is something to do in a document's shell.
type step struct {
	line     int
	script   string
	terminal bool
	output   *block // the expected output; nil for any
}

// plan returns the steps of a document's session, and the Go blocks that they call
// through program. They call Python blocks through program.py.
func plan(blocks []block, program string) (steps []step, fragments []block, problems []string) {
	runs := false // the block before was run
	for _, b := range blocks {
		if p := b.problem(); p != "" {
			problems = append(problems, fmt.Sprintf("%d: %s", b.line-1, p))
			continue
		}
		name, isFile := b.file()
		_, isExempt := b.exempt()
		switch {
		case isExempt:
		case isFile:
			steps = append(steps, step{line: b.line, script: heredoc(name, b.text)})
		case b.how == "output" && !runs:
			problems = append(problems, fmt.Sprintf("%d: no command before this output", b.line-1))
		case b.how == "output":
			steps[len(steps)-1].output = &b
		case b.lang == "sh":
			steps = append(steps, step{line: b.line, script: b.text, terminal: b.how == "terminal"})
		case b.lang == "go":
			fragments = append(fragments, b)
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("%s %d\n", program, b.line)})
		case b.lang == "js":
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("node %s\n", moduleOf(b, filepath.Dir(program)))})
		case b.lang == "python":
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("%s.py %d\n", program, b.line)})
		}
		runs = b.lang == "sh" && b.how != "output" && !isExempt && !isFile || b.isFragment()
	}
	return steps, fragments, problems
}

// heredoc writes text to a file, as a reader would with an editor.
func heredoc(name, text string) string {
	return fmt.Sprintf("mkdir -p \"$(dirname '%s')\"\ncat >'%s' <<'END OF FILE'\n%sEND OF FILE\n", name, name, text)
}

// prints reports whether got matches the shown output. In it, ... stands for any number
// of lines if it is alone on a line, and otherwise for any text within a line.
func prints(shown, got string) bool {
	pattern := `\A`
	for line := range strings.Lines(strings.TrimSpace(shown) + "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), `\.\.\.`, `.*`) + `[ ]*\n`
	}
	return regexp.MustCompile(pattern + `\z`).MatchString(strings.TrimSpace(got) + "\n")
}

// onScreen returns printed text as a terminal would show it: without colours, and only
// the last version of overwritten lines.
func onScreen(printed string) (seen string) {
	for line := range strings.Lines(colours.ReplaceAllString(printed, "")) {
		line = strings.TrimRight(line, "\r\n")
		seen += line[strings.LastIndex(line, "\r")+1:] + "\n"
	}
	return seen
}

// importable are the packages that Go blocks may use without importing them.
var importable = map[string]string{
	"animalstore": "animalstore", "client": "animalstore/client", "context": "context", "errors": "errors", "fmt": "fmt",
	"http": "net/http", "log": "log", "os": "os", "slices": "slices", "strings": "strings", "time": "time",
}

// fragmentMain runs the fragment that its argument names by its line.
const fragmentMain = `package main

import (
	"context"
	"fmt"
	"os"

	"animalstore/client"
)

var fragments = map[string]func(context.Context, *client.Client) error{}

func main() {
	c, err := client.New("http://127.0.0.1:8080", os.Getenv("ANIMALSTORE_API_KEY"))
	if err == nil {
		err = fragments[os.Args[1]](context.Background(), c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// buildFragments builds a program from the Go blocks of a document. The compiler
// reports errors by the document's line numbers.
func buildFragments(document string, fragments []block, dir, program string) error {
	files := map[string]string{"main.go": fragmentMain}
	for _, f := range fragments {
		var imports strings.Builder
		for name, path := range importable {
			if name != "context" && name != "client" && regexp.MustCompile(`\b`+name+`\.`).MatchString(f.text) {
				fmt.Fprintf(&imports, "import %q\n", path)
			}
		}
		files[fmt.Sprintf("line%d.go", f.line)] = fmt.Sprintf(`package main

import "context"
import "animalstore/client"
%s
func init() {
	fragments["%d"] = func(ctx context.Context, c *client.Client) error {
//line %s:%d
%s
		return nil
	}
}
`, imports.String(), f.line, document, f.line, f.text)
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		build.Args = append(build.Args, path)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the Go blocks do not compile: %v\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// moduleOf is the file of a js block.
func moduleOf(b block, scratch string) string {
	return filepath.Join(scratch, "js", fmt.Sprintf("line%d.mjs", b.line))
}

// moduleStart comes before a js block that doesn't import the client itself.
const moduleStart = `import * as animalstore from "animalstore";
const { Client, NotModifiedError, RateLimitError, ServiceError, verifyWebhook } = animalstore;
const store = new Client("http://127.0.0.1:8080", process.env.ANIMALSTORE_API_KEY);
`

// writeModules writes the js blocks of a document, and builds the client that they import.
func writeModules(t *testing.T, blocks []block, scratch string) error {
	t.Helper()
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return b.lang != "js" || b.how != "" })
	if len(blocks) == 0 {
		return nil
	}
	testenv.Need(t, "node")
	testenv.Need(t, "npm")
	source := filepath.Join("..", "clients", "typescript")
	installed := filepath.Join(scratch, "js", "node_modules", "animalstore")
	if out, err := exec.Command(filepath.Join(source, "build"), filepath.Join(installed, "dist")).CombinedOutput(); err != nil {
		return fmt.Errorf("build the client for TypeScript: %v\n%s", err, out)
	}
	copyInto(t, filepath.Join(source, "package.json"), filepath.Join(installed, "package.json"))
	for _, b := range blocks {
		text := b.text
		if !strings.Contains(text, `from "animalstore"`) {
			text = moduleStart + text
		}
		if err := os.WriteFile(moduleOf(b, scratch), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// walkthrough runs the steps of one document in one shell, on a terminal, as a reader
// does. Documents use fixed ports, so each session has its own network namespace, where
// they are free. If the system doesn't allow that, sessions run one at a time.
type walkthrough struct {
	dir     string // where it begins: the root of a clone
	scratch string // hidden from the reader
	before  string // a script that runs before the document
	steps   []step
}

// sessionTime is far more than any session takes, even on a busy machine.
const sessionTime = 10 * time.Minute

// ownNetwork is the command that runs another one in a new network namespace with only
// a loopback interface; nil if this isn't possible.
var ownNetwork = sync.OnceValue(func() []string {
	unshare := []string{"unshare", "--net"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	wrapper := append(unshare, "sh", "-c", `ip link set lo up && exec "$@"`, "sh")
	if exec.Command(wrapper[0], append(wrapper[1:], "true")...).Run() != nil {
		return nil
	}
	return wrapper
})

// usualPorts is held by a session without its own network namespace.
var usualPorts sync.Mutex

// awaitUsualPorts waits until this machine's ports are free for a session.
func awaitUsualPorts(t *testing.T) {
	t.Helper()
	usualPorts.Lock()
	t.Cleanup(usualPorts.Unlock)
	// The server of the previous session may not be completely gone.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		l, err := net.Listen("tcp", "127.0.0.1:8080")
		if err == nil {
			l.Close()
			return
		}
		if time.Now().After(deadline) {
			testenv.Missing(t, "the documents' port is taken and no network namespace can be made: %v", err)
		}
	}
}

// preamble makes the shell strict, and saves the environment for new terminals.
const preamble = `set -euo pipefail
mapfile -d '' begin < <(env -0)
begun_in=$PWD
`

// terminal runs a script as if typed into a new terminal, and waits until the server
// there is ready.
const terminal = `(cd "$begun_in" && exec env -i "${begin[@]}" bash -euo pipefail %[1]q) >%[2]q 2>&1 </dev/null &
for ((i = 0; i < 1800; i++)); do
	! grep -qE 'serving|Ready to accept' %[2]q || break
	kill -0 $!
	sleep 0.1
done
grep -qE 'serving|Ready to accept' %[2]q
`

// repeated runs a step again while one of the servers reports that Redis was late, as it is
// on a busy machine: then each server decides on its own, which is not what the document
// shows.
const repeated = `late() { cat %[1]s/terminal*.txt | grep -c 'Redis does not answer'; }
back() { cat %[1]s/terminal*.txt | grep -c 'Redis answers again'; }
for ((attempt = 0; attempt < 20; attempt++)); do
	while [[ $(late) != $(back) ]]; do sleep 0.1; done
	late_before=$(late)
	printf '%[2]c'
%[3]s
	[[ $(late) != "$late_before" ]] || break
done
`

const (
	mark  = '\x1e' // separates the output of steps
	again = '\x1d' // separates the attempts at a step
)

// script is the whole session for bash. curl fails on an HTTP error if nothing else
// would show it.
func (w walkthrough) script() (string, error) {
	text := preamble + w.before
	withRedis := false
	for i, step := range w.steps {
		strict, curlrc := "set -e", "strict"
		if step.output != nil && !step.terminal {
			strict, curlrc = "set +e", "lenient"
		}
		text += fmt.Sprintf("printf '%c'; export CURL_HOME=%q; %s\n", mark, filepath.Join(w.scratch, curlrc), strict)
		if !step.terminal {
			if withRedis && step.output != nil {
				text += fmt.Sprintf(repeated, w.scratch, again, step.script)
			} else {
				text += step.script
			}
			continue
		}
		withRedis = withRedis || strings.HasPrefix(step.script, "redis-server ")
		script := filepath.Join(w.scratch, fmt.Sprintf("terminal%d.sh", i))
		if err := os.WriteFile(script, []byte(step.script), 0o600); err != nil {
			return "", err
		}
		text += fmt.Sprintf(terminal, script, w.terminalOf(i))
	}
	return text + fmt.Sprintf("printf '%c'\n", mark), nil
}

// terminalOf is the file with what is printed in a step's own terminal.
func (w walkthrough) terminalOf(step int) string {
	return filepath.Join(w.scratch, fmt.Sprintf("terminal%d.txt", step))
}

// run performs all steps and returns the problems.
func (w walkthrough) run(t *testing.T) (problems []string) {
	t.Helper()
	for name, curlrc := range map[string]string{
		"strict":  "silent\nno-styled-output\nnoproxy = \"*\"\nshow-error\nfail-with-body\n",
		"lenient": "silent\nno-styled-output\nnoproxy = \"*\"\n",
	} {
		dir := filepath.Join(w.scratch, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, ".curlrc"), []byte(curlrc), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := w.script()
	if err != nil {
		t.Fatal(err)
	}
	if ownNetwork() == nil {
		awaitUsualPorts(t)
	}
	output, err := runOnTerminal(t, w.dir, append(slices.Clone(ownNetwork()), "bash", "-c", text))
	return w.judge(strings.Split(output, string(mark)), err)
}

// runOnTerminal runs a program on a terminal to its end, kills everything it started,
// and returns what was printed.
func runOnTerminal(t *testing.T, dir string, argv []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sessionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	// Go builds from the cache with the flags of the binary under test.
	cmd.Env = append(cleanEnv(), "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS"), "CGO_ENABLED=0", "TERM=dumb", "PWD="+dir)
	endAll := func() error { // the terminal makes it the leader of a group
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return err
	}
	cmd.Cancel = endAll
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 250})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var printed bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		printed.ReadFrom(screen) // fails when the last process has closed it
	}()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v", sessionTime)
	}
	err = errors.Join(err, endAll()) // servers in the background
	<-read
	return printed.String(), err
}

// judge compares the output, before and in each step, with the shown output, and finds
// where a session ended early.
func (w walkthrough) judge(printed []string, ended error) (problems []string) {
	for i, step := range w.steps {
		if len(printed) < 2 {
			return []string{fmt.Sprintf(" the session doesn't start: %v\n%s", ended, indent(printed[0]))}
		}
		got := onScreen(printed[i+1][strings.LastIndexByte(printed[i+1], again)+1:])
		if len(printed) == i+2 {
			return append(problems, fmt.Sprintf("%d: the session ends here: %v\n%s\nprints:\n%s\n%s", step.line, ended, indent(step.script), indent(got), w.terminals()))
		}
		if step.terminal {
			got = contents(w.terminalOf(i))
		}
		if step.output != nil && !prints(step.output.text, got) {
			problems = append(problems, fmt.Sprintf("%d:\n%s\nprints:\n%s\nthe document shows, at %d:\n%s", step.line, indent(step.script), indent(got), step.output.line, indent(step.output.text)))
		}
	}
	return problems
}

// terminals returns what was printed in separate terminals.
func (w walkthrough) terminals() (all string) {
	for i, step := range w.steps {
		if step.terminal && exists(w.terminalOf(i)) {
			all += fmt.Sprintf("in the terminal of line %d:\n%s\n", step.line, indent(contents(w.terminalOf(i))))
		}
	}
	return all
}

// contents returns a file's contents, or the error if it can't be read.
func contents(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// A document that prints this finds an empty PostgreSQL server at that address.
const documentedPostgres = "postgres://animalstore@127.0.0.1/"

// usualPostgres is the address of that server.
const usualPostgres = "127.0.0.1:5432"

// bridge is set when this program runs as a forwarder between two networks: a session
// has its own network namespace but shares the file system.
const bridge = "ANIMALSTORE_E2E_BRIDGE"

func init() {
	socket := os.Getenv(bridge)
	if socket == "" {
		return
	}
	l, err := net.Listen("tcp", usualPostgres)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	forward(l, "unix", socket)
}

// providePostgres starts a server and returns the script that a session must run first
// to make it available at the usual address.
func providePostgres(t *testing.T) (script string) {
	t.Helper()
	server := pgtest.Start(t)
	server.MustExec(t, "postgres", "CREATE DATABASE animalstore")
	dir, err := os.MkdirTemp("", "animalstore-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "postgres")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go forward(l, "tcp", server.Address())
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(usualPostgres, ":")
	return fmt.Sprintf("%s=%q %q &\nuntil (: >/dev/tcp/%s/%s) 2>/dev/null; do kill -0 $!; sleep 0.05; done\n", bridge, socket, program, host, port)
}

// forward forwards connections until the listener is closed.
func forward(l net.Listener, network, address string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial(network, address)
			if err != nil {
				return
			}
			defer to.Close()
			go func() {
				io.Copy(to, from)
				to.Close()
			}()
			io.Copy(from, to)
		}()
	}
}
