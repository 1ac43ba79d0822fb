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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"
)

// walkthrough runs the steps of one document in one shell, on a terminal, as a reader
// does. Documents use fixed ports, so each session has its own network namespace, where
// they are free. If the system doesn't allow that, sessions run one at a time.
type walkthrough struct {
	dir      string // where it begins: the root of a clone
	scratch  string // hidden from the reader
	postgres string // is used for documentedPostgres
	steps    []step
}

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
	testenv.Eventually(t, "the documents' port is free", func() bool {
		l, err := net.Listen("tcp", "127.0.0.1:8080")
		if err == nil {
			l.Close()
		}
		return err == nil
	})
}

// preamble makes the shell strict, and saves the environment for new terminals.
const preamble = `set -euo pipefail
mapfile -d '' begin < <(env -0)
begun_in=$PWD
`

// terminal runs a script as if typed into a new terminal, and waits until the server
// there is ready.
const terminal = `(cd "$begun_in" && exec env -i "${begin[@]}" bash -euo pipefail %[1]q) >%[2]q 2>&1 </dev/null &
for ((i = 0; i < %[3]d; i++)); do
	! grep -qE 'serving|Ready to accept' %[2]q || break
	kill -0 $!
	sleep 0.1
done
grep -qE 'serving|Ready to accept' %[2]q
`

// mark separates the output of steps.
const mark = '\x1e'

// documentedRedis is an address in documents. On a busy machine Redis can be late, and a
// server would decide on its own, so sessions wait for it.
const documentedRedis = "redis://127.0.0.1:6379"

// documentedPostgres is a database in documents. A session's own network doesn't have the
// server of the test, so it uses a socket.
const documentedPostgres = "postgres://animalstore@127.0.0.1/animalstore"

// script is the whole session for bash. curl fails on an HTTP error if nothing else
// would show it.
func (w walkthrough) script(t *testing.T) string {
	t.Helper()
	text := preamble
	addresses := strings.NewReplacer(documentedRedis, "'"+documentedRedis+"?"+redistest.LongTimeout+"'", documentedPostgres, "'"+w.postgres+"'")
	for i, step := range w.steps {
		strict, curlrc := "set -e", "strict"
		if step.output != nil && !step.terminal {
			strict, curlrc = "set +e", "lenient"
		}
		text += fmt.Sprintf("printf '%c'; export CURL_HOME=%q; %s\n", mark, filepath.Join(w.scratch, curlrc), strict)
		here := addresses.Replace(step.script)
		if !step.terminal {
			text += here
			continue
		}
		script := mustWrite(t, filepath.Join(w.scratch, fmt.Sprintf("terminal%d.sh", i)), here, 0o600)
		text += fmt.Sprintf(terminal, script, w.terminalOf(i), testenv.Deadline/(100*time.Millisecond))
	}
	return text + fmt.Sprintf("printf '%c'\n", mark)
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
		mustWrite(t, filepath.Join(w.scratch, name, ".curlrc"), curlrc, 0o600)
	}
	text := w.script(t)
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
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(cleanEnv(), testenv.BuildFlags, []string{"TERM=dumb", "PWD=" + dir})
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
		err = fmt.Errorf("not done after %v", testenv.Deadline)
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
		got := onScreen(printed[i+1])
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

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// startDocumentedPostgres starts a server and returns the URL of an empty database there.
func startDocumentedPostgres(t *testing.T) string {
	t.Helper()
	server := pgtest.Start(t)
	server.MustExec(t, "postgres", "CREATE DATABASE animalstore")
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var dir, port string
	row := conn.QueryRow(t.Context(), "SELECT current_setting('unix_socket_directories'), current_setting('port')")
	if err := row.Scan(&dir, &port); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://animalstore@/animalstore?host=%s&port=%s", dir, port)
}
