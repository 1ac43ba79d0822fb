package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"github.com/creack/pty"
)

// lockedBuffer can be written to while it is read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// terminalProcess is a command that runs on a terminal of 80 columns.
type terminalProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	shown lockedBuffer
	read  chan struct{}
}

func startOnTerminal(t *testing.T, dir string, env []string, args ...string) *terminalProcess {
	t.Helper()
	p := &terminalProcess{t: t, cmd: exec.Command("animalstore", args...), read: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	screen, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); screen.Close() })
	go func() {
		defer close(p.read)
		io.Copy(&p.shown, screen)
	}()
	return p
}

// waitFor waits until the terminal shows a text.
func (p *terminalProcess) waitFor(pattern string) {
	p.t.Helper()
	shown := regexp.MustCompile(pattern)
	testenv.Eventually(p.t, "the terminal shows "+pattern, func() bool { return shown.MatchString(p.shown.String()) })
}

// interrupt does what a terminal does on Ctrl-C, and returns the exit code.
func (p *terminalProcess) interrupt() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	ended := time.AfterFunc(testenv.Deadline, func() { p.cmd.Process.Kill() })
	p.cmd.Wait()
	if !ended.Stop() {
		p.t.Fatal("it didn't end after Ctrl-C")
	}
	<-p.read
	return p.cmd.ProcessState.ExitCode()
}

// TestEveryStartShowsAddresses: not only the first start says where everything is.
func TestEveryStartShowsAddresses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--database", "sqlite:store.db"}
	for start := range 2 {
		p := startOnTerminal(t, dir, nil, args...)
		p.waitFor(`(?s)  API +http://127\.0\.0\.1:\d+/v1\r\n.*  Console +http://127\.0\.0\.1:\d+/console\r\n.*msg=serving`)
		if got, want := strings.Contains(p.shown.String(), "owner key"), start == 0; got != want {
			t.Errorf("start %d: got a greeting with a key: %t, want %t", start, got, want)
		}
		if code := p.interrupt(); code != 0 {
			t.Errorf("got exit code %d after Ctrl-C, want 0: a server is stopped like that", code)
		}
	}
}

// TestInterruptedWait: Ctrl-C ends a wait at once, leaves no partial line behind
// and exits with an error.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	s, err := newImpostor("exhausted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	p := startOnTerminal(t, t.TempDir(), []string{keyVariable + "=" + ownerKey}, "pets", "list", "--wait", "--url", s.URL)
	p.waitFor("retrying in")
	if code := p.interrupt(); code != 130 {
		t.Errorf("got exit code %d, want 130", code)
	}
	lines := strings.Split(p.shown.String(), "\r\x1b[K")
	if last := lines[len(lines)-1]; strings.Contains(last, "retrying in") {
		t.Errorf("got %q at the end, want no countdown", last)
	}
}

// TestImportOnTerminal: the progress counts pets, says when it is slowed down by the
// limits, keeps its line to itself, and leaves it clean after Ctrl-C.
func TestImportOnTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := startServer(dir, "--listen", "127.0.0.1:0", "--database", "sqlite:store.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	create := exec.Command("animalstore", "keys", "create", "--name", "slow", "--plan", "enterprise", "--per-minute", "10", "--per-day", "1000", "--database", "sqlite:store.db")
	create.Dir = dir
	secret, err := create.Output()
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	file.WriteString("name,categoryId\n\"two\nlines\",7\nbad,x\n")
	for i := range 20 {
		fmt.Fprintf(&file, "pet %d,7\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "pets.csv"), []byte(file.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	p := startOnTerminal(t, dir, []string{keyVariable + "=" + strings.TrimSpace(string(secret)), "ANIMALSTORE_URL=" + server.url}, "pets", "import", "pets.csv")
	p.waitFor(`\d of 22 pets[^$]*Slowing down: the key allows 10 requests per minute\.`)
	if code := p.interrupt(); code != 130 {
		t.Errorf("got exit code %d after Ctrl-C, want 130", code)
	}
	// Each text begins in the first column of an empty line.
	shown := strings.ReplaceAll(p.shown.String(), "^C", "")
	for line := range strings.SplitSeq(shown, "\r\n") {
		texts := strings.Split(line, "\r\x1b[K")
		last := texts[len(texts)-1]
		if len(texts) == 1 || last == "" {
			continue
		}
		if strings.Contains(last, " of 22 pets") {
			t.Errorf("got %q left on the screen, want no progress", last)
		}
	}
	if want := "\r\x1b[Kline 4: categoryId must be an integer\r\n"; !strings.Contains(shown, want) {
		t.Errorf("got %q, want %q in it", shown, want)
	}
}
