package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// command is one line that the runner sends to an adapter.
type command struct {
	ID      int64          `json:"id"`
	Client  string         `json:"client"`
	Call    string         `json:"call"`
	Args    map[string]any `json:"args"`
	Options map[string]any `json:"options"`
}

// adapter is a running adapter: a program that makes calls with one client library. It
// reads commands and writes replies, one JSON object per line.
type adapter struct {
	name string
	in   io.WriteCloser

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan map[string]any
	failure error // why there are no more replies
}

// startProcess starts the adapter of a language as a process.
func startProcess(t testing.TB, name string, dir string, argv ...string) *adapter {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the adapter for %s: %v", name, err)
	}
	a := newAdapter(name, in)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.read(out)
		err := cmd.Wait()
		a.fail(fmt.Errorf("the adapter for %s ended: %v\n%s", name, err, &stderr))
	}()
	t.Cleanup(func() {
		in.Close()
		select {
		case <-done:
		case <-time.After(testenv.Deadline):
			_ = cmd.Process.Kill()
			<-done
			t.Errorf("the adapter for %s didn't end with its input", name)
		}
	})
	return a
}

func newAdapter(name string, in io.WriteCloser) *adapter {
	return &adapter{name: name, in: in, waiting: map[int64]chan map[string]any{}}
}

// read takes the replies from out until its end.
func (a *adapter) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var reply map[string]any
		if err := json.Unmarshal(lines.Bytes(), &reply); err != nil {
			a.fail(fmt.Errorf("the adapter for %s wrote %q: %v", a.name, lines.Text(), err))
			continue
		}
		id, _ := reply["id"].(float64)
		a.mu.Lock()
		to := a.waiting[int64(id)]
		delete(a.waiting, int64(id))
		a.mu.Unlock()
		if to == nil {
			a.fail(fmt.Errorf("the adapter for %s replied to a command that it didn't get: %s", a.name, lines.Text()))
			continue
		}
		to <- reply
	}
	if err := lines.Err(); err != nil {
		a.fail(err)
	}
}

// fail ends all waiting calls with an error.
func (a *adapter) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure == nil {
		a.failure = err
	}
	for id, to := range a.waiting {
		close(to)
		delete(a.waiting, id)
	}
}

// do sends a command and waits for its reply.
func (a *adapter) do(c command) (map[string]any, error) {
	to := make(chan map[string]any, 1)
	a.mu.Lock()
	if a.failure != nil {
		a.mu.Unlock()
		return nil, a.failure
	}
	a.last++
	c.ID = a.last
	a.waiting[c.ID] = to
	line, err := json.Marshal(c)
	if err == nil {
		_, err = a.in.Write(append(line, '\n'))
	}
	a.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("send to the adapter for %s: %w", a.name, err)
	}
	select {
	case reply, ok := <-to:
		if !ok {
			return nil, a.failure
		}
		return reply, nil
	case <-time.After(testenv.Deadline):
		return nil, fmt.Errorf("the adapter for %s didn't reply to %s within %v", a.name, c.Call, testenv.Deadline)
	}
}
