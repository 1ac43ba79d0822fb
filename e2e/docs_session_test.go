package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// walkthrough runs the steps of one document in one shell. Documents print the ports
// that a reader will use, so each session has a network of its own, where they are
// free. Where the system does not let us make one, sessions run one by one.
type walkthrough struct {
	document string
	dir      string // where it begins: the root of a clone
	scratch  string // scripts and outputs, out of the reader's sight
	steps    []step
}

// sessionTime is far more than any session takes.
const sessionTime = 4 * time.Minute

// ownNetwork is the program that runs another one in a network of its own with
// nothing but a loopback interface, nil where this cannot be done.
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

// usualPorts is held by a session without a network of its own.
var usualPorts sync.Mutex

// awaitUsualPorts takes the machine's own ports for a session.
func awaitUsualPorts(t *testing.T) {
	t.Helper()
	usualPorts.Lock()
	t.Cleanup(usualPorts.Unlock)
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		skip(t, "the documents' port is taken and no network namespace can be made: %v", err)
	}
	l.Close()
}

// preamble makes the shell strict, and keeps what a new terminal begins with.
const preamble = `set -euo pipefail
mapfile -d '' begin < <(env -0)
begun_in=$PWD
`

// terminal runs a script as if typed into a new terminal, and waits until the
// server there logs that it serves.
const terminal = `(cd "$begun_in" && exec env -i "${begin[@]}" bash -euo pipefail %[1]q) >%[2]q 2>&1 </dev/null &
for ((i = 0; i < 600; i++)); do
	! grep -q serving %[2]q || break
	kill -0 $!
	sleep 0.1
done
grep -q serving %[2]q
`

// script is the whole session for bash. The output of each step is in a file of
// its own. Curl fails on an HTTP error where nothing else would show it.
func (s walkthrough) script() (string, error) {
	text := preamble
	for i, step := range s.steps {
		strict, curlrc := "set -e", "strict"
		if step.output != nil && !step.terminal {
			strict, curlrc = "set +e", "lenient"
		}
		text += fmt.Sprintf("exec >%q 2>&1\nexport CURL_HOME=%q; %s\n", s.outputOf(i), filepath.Join(s.scratch, curlrc), strict)
		if !step.terminal {
			text += step.script
			continue
		}
		script := filepath.Join(s.scratch, fmt.Sprintf("terminal%d.sh", i))
		if err := os.WriteFile(script, []byte(step.script), 0o600); err != nil {
			return "", err
		}
		text += fmt.Sprintf(terminal, script, s.terminalOf(i))
	}
	return text + fmt.Sprintf("set -e\ntouch %q\n", s.outputOf(len(s.steps))), nil
}

func (s walkthrough) outputOf(step int) string {
	return filepath.Join(s.scratch, "output"+strconv.Itoa(step))
}

func (s walkthrough) terminalOf(step int) string { return s.outputOf(step) + ".terminal" }

// run does all steps and says what went wrong.
func (s walkthrough) run(t *testing.T) (problems []string) {
	t.Helper()
	for name, curlrc := range map[string]string{
		"strict":  "silent\nshow-error\nfail-with-body\nnoproxy = \"*\"\n",
		"lenient": "silent\nnoproxy = \"*\"\n",
	} {
		dir := filepath.Join(s.scratch, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, ".curlrc"), []byte(curlrc), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := s.script()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(slices.Clone(ownNetwork()), "bash", "-c", text)
	if ownNetwork() == nil {
		awaitUsualPorts(t)
	}
	return s.judge(runGroup(t, s.dir, s.outputOf(0), argv))
}

// runGroup runs a program to its end, and then ends whatever it started.
func runGroup(t *testing.T, dir, output string, argv []string) error {
	t.Helper()
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), sessionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = out, out
	// The flags are those of the binary under test, so that Go builds from its cache.
	cmd.Env = append(cleanEnv(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "PWD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endGroup := func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return err
	}
	cmd.Cancel = endGroup
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer endGroup() // servers in the background
	if err := cmd.Wait(); ctx.Err() != nil {
		return fmt.Errorf("not done after %v", sessionTime)
	} else {
		return err
	}
}

// judge compares the outputs with those shown, and finds where a session ended
// before its time.
func (s walkthrough) judge(ended error) (problems []string) {
	for i, step := range s.steps {
		got := contents(s.outputOf(i))
		if !exists(s.outputOf(i + 1)) {
			return append(problems, fmt.Sprintf("%d: the session ends here: %v\n%s\nprints:\n%s\n%s", step.line, ended, indent(step.script), indent(got), s.terminals()))
		}
		if step.terminal {
			got = contents(s.terminalOf(i))
		}
		if step.output != nil && !prints(step.output.text, got) {
			problems = append(problems, fmt.Sprintf("%d:\n%s\nprints:\n%s\nshown is, at %d:\n%s", step.line, indent(step.script), indent(got), step.output.line, indent(step.output.text)))
		}
	}
	return problems
}

// terminals is what was printed in terminals of their own.
func (s walkthrough) terminals() (all string) {
	for i, step := range s.steps {
		if step.terminal && exists(s.terminalOf(i)) {
			all += fmt.Sprintf("in the terminal of line %d:\n%s\n", step.line, indent(contents(s.terminalOf(i))))
		}
	}
	return all
}

// contents is what is in a file, and the error if it cannot be read.
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

// buildFragments makes a program of the Go blocks of a document. The compiler
// complains by the document's lines.
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
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program)
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
