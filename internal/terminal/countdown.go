package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Countdown shows how long a command still has to wait: on a terminal in its line,
// which is overwritten every second, elsewhere as one line per wait.
type Countdown struct {
	line *Line

	mu     sync.Mutex
	stop   chan struct{} // closed to end the wait that is shown; nil: there is none
	done   chan struct{} // closed when it is gone
	logged time.Time     // the end of the wait that was last printed without a terminal
}

// NewCountdown returns a countdown in a line.
func NewCountdown(line *Line) *Countdown { return &Countdown{line: line} }

// Start shows the reason for a wait and what happens after it. It replaces the
// wait before it.
func (c *Countdown) Start(wait time.Duration, reason, next string) {
	c.End()
	if wait < time.Second { // too short to read
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(wait)
	if !c.line.screen.Rewrites {
		if until.Sub(c.logged).Abs() > time.Second { // several requests may wait for the same
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

// Before returns a writer for results, above the line. They show that a wait is over.
func (c *Countdown) Before(w io.Writer) io.Writer { return afterCountdown{c.line.Above(w), c} }

type afterCountdown struct {
	io.Writer
	shown *Countdown
}

func (a afterCountdown) Write(p []byte) (int, error) {
	a.shown.End()
	return a.Writer.Write(p)
}
