// Package e2e tests the built binary from outside: over HTTP, through its command line,
// with signals, and by the files it leaves on disk.
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	dir, err := os.MkdirTemp("", "animalstore-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	if binary, err = testenv.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	pgtest.Close()
	os.RemoveAll(dir)
	os.Exit(code)
}

// settings control how a server is started.
type settings struct {
	wrapper  []string
	database string
	listen   string
	args     []string
	env      []string
}

type option func(*settings)

// onDatabase sets the file, for tests that start more than one server on it, or the URL
// of a PostgreSQL database.
func onDatabase(path string) option { return func(s *settings) { s.database = path } }

func onAddress(addr string) option { return func(s *settings) { s.listen = addr } }

func withArgs(args ...string) option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// withEnv adds variables to the environment, written NAME=value.
func withEnv(vars ...string) option {
	return func(s *settings) { s.env = append(s.env, vars...) }
}

// server is a running server.
type server struct {
	t        testing.TB
	url      string // such as http://127.0.0.1:4711, without /v1
	database string
	stdout   *testenv.Buffer
	stderr   *testenv.Buffer
	cmd      *exec.Cmd
	exited   chan struct{} // closed when the process is gone
}

// start runs a server on a free port and a new database, unless options say otherwise,
// and waits until it serves. It is killed when the test ends.
func start(t testing.TB, opts ...option) *server {
	t.Helper()
	s := launch(t, opts...)
	if !s.awaitServing() {
		t.Fatalf("the server doesn't start serving.\n%s", s.output())
	}
	return s
}

// launch is like start, for a server that may refuse to serve.
func launch(t testing.TB, opts ...option) *server {
	t.Helper()
	set := settings{listen: "127.0.0.1:0"}
	for _, opt := range opts {
		opt(&set)
	}
	if set.database == "" {
		set.database = newDatabase(t)
	}
	argv := append(slices.Clone(set.wrapper), binary, "serve", "--listen", set.listen, "--database", databaseFlag(set.database))
	argv = append(argv, set.args...)
	env, dir := append(set.env, "ANIMALSTORE_OPS_LISTEN="), "" // many run at the same time
	if !isURL(set.database) {
		dir = filepath.Dir(set.database)
	}
	s := startIn(t, dir, env, argv...)
	s.database = set.database
	return s
}

// newDatabase returns the path of a file that doesn't exist yet.
func newDatabase(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") }

func isURL(database string) bool { return strings.Contains(database, "://") }

// databaseFlag returns the value of --database for a database.
func databaseFlag(database string) string {
	if isURL(database) {
		return database
	}
	return "sqlite:" + database
}

// cleanEnv is the environment without settings of the program under test.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ANIMALSTORE_") })
}

// serving finds the address in the log, text or JSON.
var serving = regexp.MustCompile(`\bapi"?[=:]"?(https?://[^/"\s]+)/v1`)

func (s *server) awaitServing() bool {
	testenv.Eventually(s.t, "the server serves or ends", func() bool {
		if m := serving.FindStringSubmatch(s.stderr.String()); m != nil {
			s.url = m[1]
			return true
		}
		return s.ended()
	})
	return s.url != ""
}

func (s *server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Errorf("signal %v: %v", sig, err)
	}
}

// kill ends the server with SIGKILL.
func (s *server) kill() {
	if !s.ended() {
		s.signal(syscall.SIGKILL)
		<-s.exited
	}
}

// wait returns the exit code, -1 after a signal.
func (s *server) wait() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(testenv.Deadline):
		s.signal(syscall.SIGQUIT) // for the stacks
		<-s.exited
		s.t.Fatalf("the server doesn't exit.\n%s", s.output())
	}
	return s.cmd.ProcessState.ExitCode()
}

// stop shuts the server down cleanly.
func (s *server) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		s.t.Errorf("exit code %d after SIGTERM, want 0.\n%s", code, s.output())
	}
}

func (s *server) output() string {
	return fmt.Sprintf("standard output:\n%s\nstandard error:\n%s", s.stdout, s.stderr)
}

// result is the outcome of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a command of the binary to its end.
func run(t testing.TB, args ...string) result {
	t.Helper()
	return runWith(t, nil, args...)
}

// runWith is like run, with more environment variables.
func runWith(t testing.TB, env []string, args ...string) result {
	t.Helper()
	s := startIn(t, t.TempDir(), env, append([]string{binary}, args...)...)
	code := s.wait()
	return result{s.stdout.String(), s.stderr.String(), code}
}

// output runs another program that must succeed, and returns what it prints.
func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// buildTool builds a program of the module in tools.
func buildTool(t testing.TB, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(name))
	build := exec.Command("go", "-C", "../tools", "build", "-o", program, name)
	build.Env = append(os.Environ(), testenv.BuildFlags...)
	output(t, build)
	return program
}

// newKey creates a key and returns its secret.
func newKey(t testing.TB, database string, args ...string) string {
	t.Helper()
	r := run(t, append([]string{"keys", "create", "--yes", "--database", databaseFlag(database)}, args...)...)
	if r.code != 0 {
		t.Fatalf("keys create: exit code %d\n%s", r.code, r.stderr)
	}
	return strings.TrimSuffix(r.stdout, "\n")
}

// seed adds sample pets to a store.
func seed(t testing.TB, database string, pets int) {
	t.Helper()
	if r := run(t, "seed", "--pets", strconv.Itoa(pets), "--database", databaseFlag(database)); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
}

// adminKey creates a key with all permissions, which no load test can exhaust.
func adminKey(t testing.TB, database string) string {
	t.Helper()
	return newKey(t, database, "--name", "admin", "--permissions", "read,write,admin", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000")
}

// startProgram starts a program in the background, until the test ends.
func startProgram(t testing.TB, argv ...string) *server {
	t.Helper()
	return startIn(t, "", nil, argv...)
}

// startIn is like startProgram, in a directory and with more environment variables.
func startIn(t testing.TB, dir string, env []string, argv ...string) *server {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(cleanEnv(), env...)
	return startProcess(t, cmd)
}

// startProcess starts a command in the background, until the test ends.
func startProcess(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{t: t, cmd: cmd, stdout: &testenv.Buffer{}, stderr: &testenv.Buffer{}, exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	t.Cleanup(s.kill)
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
