package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"github.com/creack/pty"
)

// background is a command that runs while a test does something else.
type background struct {
	t     *testing.T
	cmd   *exec.Cmd
	shown testenv.Buffer
	read  chan struct{} // closed when everything is read
}

// startInBackground starts a command whose output goes to pipes.
func startInBackground(t *testing.T, cmd *exec.Cmd) *background {
	t.Helper()
	b := &background{t: t, cmd: cmd, read: make(chan struct{})}
	close(b.read) // Wait reads it all
	cmd.Stdout, cmd.Stderr = &b.shown, &b.shown
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return b
}

// startOnTerminal starts a command on a terminal of 80 columns.
func startOnTerminal(t *testing.T, cmd *exec.Cmd) *background {
	t.Helper()
	b := &background{t: t, cmd: cmd, read: make(chan struct{})}
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); screen.Close() })
	go func() {
		defer close(b.read)
		io.Copy(&b.shown, screen)
	}()
	return b
}

// waitFor waits until the command has shown a text, and returns its submatches.
func (b *background) waitFor(pattern string) (found []string) {
	b.t.Helper()
	wanted := regexp.MustCompile(pattern)
	testenv.Eventually(b.t, pattern+" is shown", func() bool {
		found = wanted.FindStringSubmatch(b.shown.String())
		return found != nil
	})
	return found
}

// interrupt does what a terminal does on Ctrl-C, and returns the exit code.
func (b *background) interrupt() int {
	b.t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGINT); err != nil {
		b.t.Fatal(err)
	}
	ended := time.AfterFunc(testenv.Deadline, func() { b.cmd.Process.Kill() })
	b.cmd.Wait()
	if !ended.Stop() {
		b.t.Fatal("it didn't end after Ctrl-C")
	}
	<-b.read
	return b.cmd.ProcessState.ExitCode()
}

// TestEveryStartShowsAddresses: not only the first start says where everything is.
func TestEveryStartShowsAddresses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for start := range 2 {
		cmd := exec.Command("animalstore", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--database", "sqlite:store.db")
		cmd.Dir = dir
		p := startOnTerminal(t, cmd)
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
	p := startOnTerminal(t, (&serverProcess{url: s.URL, key: ownerKey}).command("pets", "list", "--wait"))
	p.waitFor("retrying in")
	if code := p.interrupt(); code != 130 {
		t.Errorf("got exit code %d, want 130", code)
	}
	lines := strings.Split(p.shown.String(), "\r\x1b[K")
	if last := lines[len(lines)-1]; strings.Contains(last, "retrying in") {
		t.Errorf("got %q at the end, want nothing about the wait", last)
	}
}

// TestImportOnTerminal: the cost is told first, then the progress, and that the limits slow
// it down. After Ctrl-C it says what was added, and its last line adds the rest, and writes the
// ids of all.
func TestImportOnTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := mustStart(t, dir)
	secret := server.mustRun(t, "keys", "create", "--name", "slow", "--plan", "enterprise", "--per-minute", "4", "--per-day", "5")
	file := strings.Builder{}
	file.WriteString("name,categoryId\n\"two\nlines\",7\n")
	for range 549 {
		file.WriteString("goldfish,7\n")
	}
	const name = `-the shop's "$pets" .csv`
	writeFile(t, filepath.Join(dir, name), []byte(file.String()))
	server.key = secret
	first := server.command("pets", "import", "--again", "--output", "ids.csv", "--", name)
	first.Dir = dir
	p := startOnTerminal(t, first)
	p.waitFor(`(?s)550 pets, 6 requests\..* 4 requests left today: only 400 pets .*0 of 550 pets.* 4 requests per minute`)
	if code := p.interrupt(); code != 130 {
		t.Errorf("got exit code %d after Ctrl-C, want 130", code)
	}
	p.waitFor(`Added 100 pets\.\r\n`)
	if left, err := filepath.Glob(filepath.Join(dir, "*ids.csv*")); err != nil || len(left) > 0 {
		t.Errorf("after Ctrl-C: got the files %q (%v), want none", left, err)
	}
	server.mustRun(t, "keys", "set", "2", "--per-minute", "1000", "--per-day", "1000", "--database", "sqlite:"+filepath.Join(dir, "animalstore.db"))
	server.kill()
	server = mustStart(t, dir) // it doesn't remember the lower limits for a moment
	server.key = secret
	lines := strings.Split(strings.TrimSpace(p.shown.String()), "\n")
	next := exec.Command("sh", "-c", lines[len(lines)-1])
	next.Dir, next.Env = dir, server.command().Env
	p = startOnTerminal(t, next)
	p.waitFor(`Added 450 pets; 100 had been added by an earlier run\.\r\n`)
	want := "name,categoryId,id\n\"two\nlines\",7,1\n"
	for id := 2; id <= 550; id++ {
		want += fmt.Sprintf("goldfish,7,%d\n", id)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "ids.csv")); err != nil || string(got) != want {
		t.Errorf("got the ids %.200q (%v), want %.200q", got, err, want)
	}
	server.key = ownerKey
	if counts := server.mustRun(t, "inventory", "--json"); !strings.Contains(counts, `"available": 550`) {
		t.Errorf("got %s, want 550 pets", counts)
	}
}
