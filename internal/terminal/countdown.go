package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Countdown shows how much longer a command has to wait. On a terminal it updates its
// line every second; elsewhere it prints one line per wait.
type Countdown struct {
	line *Line

	mu     sync.Mutex
	stop   chan struct{} // closed to end the current wait; nil: none
	done   chan struct{} // closed when the wait has ended
	logged time.Time     // the end of the wait that was last printed without a terminal
}

// NewCountdown returns a countdown in a line.
func NewCountdown(line *Line) *Countdown { return &Countdown{line: line} }

// Start shows the reason for a wait and what happens after it. It replaces the previous
// wait.
func (c *Countdown) Start(wait time.Duration, reason, next string) {
	c.End()
	if wait < time.Second { // too short to read
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(wait)
	if !c.line.screen.Rewrites {
		if until.Sub(c.logged).Abs() > time.Second { // several requests may wait for the same reason
			fmt.Fprintf(c.line.w, "%s: %s in %s\n", reason, next, Duration(wait))
			c.logged = until
		}
		return
	}
	stop, done := make(chan struct{}), make(chan struct{})
	c.stop, c.done = stop, done
	go func() {
		defer close(done)
		tick, over := time.NewTicker(time.Second), time.NewTimer(wait)
		defer tick.Stop()
		defer over.Stop()
		for left := time.Until(until); left > 0; left = time.Until(until) {
			c.line.setWait(fmt.Sprintf("%s: %s in %s (Ctrl-C stops)", reason, next, Duration(left)))
			select {
			case <-tick.C:
			case <-over.C:
			case <-stop:
				until = time.Time{}
			}
		}
		c.line.setWait("")
	}()
}

// End removes the wait from the line.
func (c *Countdown) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		close(c.stop)
		<-c.done
		c.stop, c.done = nil, nil
	}
}

// Before returns a writer for results, above the line. A result means that the wait is
// over.
func (c *Countdown) Before(w io.Writer) io.Writer { return afterCountdown{c.line.Above(w), c} }

type afterCountdown struct {
	io.Writer
	shown *Countdown
}

func (a afterCountdown) Write(p []byte) (int, error) {
	a.shown.End()
	return a.Writer.Write(p)
}
