package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/terminal"

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

// TestCountdown: the line is overwritten every second, counts down to the end of
// the window, and is gone when the command continues.
func TestCountdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t, clienttest.InMemory(), clienttest.WithPlan(animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 2, PerDay: 100}))
		var shown lockedBuffer
		line := terminal.NewLine(&shown, terminal.Screen{Terminal: true, Rewrites: true, Width: 80})
		calls := server.NewClient(server.Key, client.WithOnWait(showWait(line)))
		began := time.Now()
		for range 3 {
			if _, err := calls.GetLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		line.EndWait()
		if waited := time.Since(began); waited < 59*time.Second || waited > 63*time.Second {
			t.Errorf("got through after %v, want about a minute", waited)
		}
		lines := strings.Split(shown.String(), "\r\x1b[K")
		var counts []string
		for _, line := range lines[1 : len(lines)-1] {
			left, ok := strings.CutPrefix(line, "limit of 2 requests per minute reached: retrying in ")
			if !ok {
				t.Fatalf("got the line %q, want one that says why", line)
			}
			counts = append(counts, strings.TrimSuffix(left, " (Ctrl-C stops)"))
		}
		if n := len(counts); n < 59 || n > 63 {
			t.Errorf("got %d lines, want one a second: %q", n, counts)
		}
		if last := counts[len(counts)-3:]; !strings.HasSuffix(strings.Join(last, ","), "3 s,2 s,1 s") {
			t.Errorf("got %q at the end, want 3 s, 2 s, 1 s", last)
		}
		if first, last := lines[0], lines[len(lines)-1]; first != "" || last != "" {
			t.Errorf("got %q before and %q after the countdown, want an empty line", first, last)
		}
	})
}

// TestInterruptedWait: Ctrl-C ends a wait at once, leaves no partial line behind
// and exits with an error.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	url := serveImpostor(t, "exhausted")
	cmd := exec.Command("animalstore", "pets", "list", "--wait", "--url", url)
	cmd.Env = append(os.Environ(), keyVariable+"="+ownerKey)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var shown lockedBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&shown, screen)
	}()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(shown.String(), "request limit per day reached: retrying in") {
		if time.Now().After(deadline) {
			t.Fatalf("got %q after a minute, want a countdown", shown.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	// As the terminal does on Ctrl-C.
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	cmd.Wait()
	if !ended.Stop() {
		t.Fatal("the wait went on for a minute after Ctrl-C")
	}
	<-read
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("got exit code %d, want 130", code)
	}
	if got, want := shown.String(), "\r\x1b[Kanimalstore: stopped before it was done\r\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q at the end, want %q", got, want)
	}
}
