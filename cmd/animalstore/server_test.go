package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// ownerKey may do everything on a server that a test started.
const ownerKey = "an-owner-key-for-tests"

// serverProcess is a running "animalstore serve".
type serverProcess struct {
	cmd *exec.Cmd
	url string
	key string // of its callers
}

var servingLine = regexp.MustCompile(`msg=serving api=(http\S+)/v1`)

// startServer starts "animalstore serve" in dir.
func startServer(dir string, args ...string) (*serverProcess, error) {
	cmd := exec.Command("animalstore", append([]string{"serve"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), ownerKeyVariable+"="+ownerKey, "ANIMALSTORE_OPS_LISTEN=")
	return awaitServing(cmd)
}

// awaitServing starts a server and waits until it is ready.
func awaitServing(cmd *exec.Cmd) (*serverProcess, error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	var log strings.Builder
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
				io.Copy(io.Discard, stderr)
				return
			}
			fmt.Fprintln(&log, lines.Text())
		}
	}()
	s := &serverProcess{cmd: cmd, key: ownerKey}
	select {
	case url, ok := <-found:
		if ok {
			s.url = url
			return s, nil
		}
		s.kill()
		return nil, fmt.Errorf("the server ended before it was ready:\n%s", log.String())
	case <-time.After(testenv.Deadline):
		s.kill()
		return nil, errors.New("the server isn't ready")
	}
}

// command is one that calls the server.
func (s *serverProcess) command(args ...string) *exec.Cmd {
	cmd := exec.Command("animalstore", args...)
	cmd.Env = append(os.Environ(), keyVariable+"="+s.key, "ANIMALSTORE_URL="+s.url)
	return cmd
}

// mustRun runs a command that calls the server, and returns its output.
func (s *serverProcess) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var notes strings.Builder
	cmd := s.command(args...)
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, notes.String())
	}
	return strings.TrimSpace(string(out))
}

// mustStart starts a server in dir that is killed when the test ends.
func mustStart(t *testing.T, dir string, args ...string) *serverProcess {
	t.Helper()
	s, err := startServer(dir, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

func (s *serverProcess) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// stop stops the server as a service manager does.
func (s *serverProcess) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("got %v after SIGTERM, want success", err)
	}
}

func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serving FILE [FLAG…]")
	}
	flags := append([]string{"--listen", "127.0.0.1:0", "--database", "sqlite:" + args[0]}, args[1:]...)
	s, err := startServer(ts.MkAbs("."), flags...)
	ts.Check(err)
	ts.Defer(s.kill)
	pointTo(ts, s.url)
}

// pointTo makes the commands of a script call a server.
func pointTo(ts *testscript.TestScript, url string) {
	_, address, _ := strings.Cut(url, "://")
	ts.Setenv("ADDRESS", address)
	ts.Setenv("ANIMALSTORE_URL", url)
	ts.Setenv(keyVariable, ownerKey)
}

func setKey(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(keyVariable, strings.TrimSpace(ts.ReadFile(args[0])))
}

// scriptTerminal runs a command on a pseudo-terminal.
func scriptTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal CODE COMMAND…")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = os.Environ()
	for _, name := range []string{keyVariable, "ANIMALSTORE_URL", "ANIMALSTORE_DATABASE", "NO_COLOR", "TERM"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	width := 80
	if text := ts.Getenv("WIDTH"); text != "" {
		width = int(number(ts, text))
	}
	shown, code, err := runOnTerminal(cmd, width, ts.Getenv("TYPED"))
	ts.Check(err)
	io.WriteString(ts.Stdout(), shown)
	wantCode(ts, args, code)
}

// runOnTerminal runs a command on a terminal where a line was typed in advance, and
// returns what it shows and its exit code.
func runOnTerminal(cmd *exec.Cmd, width int, typed string) (shown string, code int, err error) {
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: uint16(width)})
	if err != nil {
		return "", 0, err
	}
	defer screen.Close()
	if typed != "" {
		if _, err := io.WriteString(screen, typed+"\n"); err != nil {
			return "", 0, err
		}
	}
	var b bytes.Buffer
	// When the last process closes the terminal, Linux reports EIO and others EOF.
	if _, err := io.Copy(&b, screen); err != nil && !errors.Is(err, syscall.EIO) {
		return "", 0, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", 0, err
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n"), cmd.ProcessState.ExitCode(), nil
}
