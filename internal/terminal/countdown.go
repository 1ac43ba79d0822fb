package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Countdown shows how long a command still has to wait: on a terminal as one
// line that is overwritten every second, elsewhere as one line per wait.
type Countdown struct {
	w      io.Writer
	screen Screen

	mu   sync.Mutex
	stop chan struct{} // closed to end the line that is shown; nil: there is none
	done chan struct{} // closed when it is gone
}

// NewCountdown returns a countdown on a writer whose screen can do what s says.
func NewCountdown(w io.Writer, s Screen) *Countdown {
	return &Countdown{w: w, screen: s}
}

// Start shows the reason for a wait and what happens after it. It replaces the
// wait before it.
func (c *Countdown) Start(wait time.Duration, reason, next string) {
	c.End()
	if wait < time.Second { // too short to read
		return
	}
	if !c.screen.Rewrites {
		fmt.Fprintf(c.w, "%s: %s in %s\n", reason, next, Duration(wait))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stop, done := make(chan struct{}), make(chan struct{})
	c.stop, c.done = stop, done
	until := time.Now().Add(wait)
	go func() {
		defer close(done)
		tick, over := time.NewTicker(time.Second), time.NewTimer(wait)
		defer tick.Stop()
		defer over.Stop()
		for left := time.Until(until); left > 0; left = time.Until(until) {
			c.overwrite(fmt.Sprintf("%s: %s in %s (Ctrl-C stops)", reason, next, Duration(left)))
			select {
			case <-tick.C:
			case <-over.C:
			case <-stop:
				until = time.Time{}
			}
		}
		c.overwrite("")
	}()
}

// End removes the line, so that something else can be printed.
func (c *Countdown) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		close(c.stop)
		<-c.done
		c.stop, c.done = nil, nil
	}
}

// overwrite replaces the line the cursor is on. It cuts text to the width of the
// screen, because a line that wraps can't be overwritten.
func (c *Countdown) overwrite(text string) {
	if c.screen.Width > 0 {
		text = cut(text, c.screen.Width-1)
	}
	fmt.Fprint(c.w, "\r\x1b[K", text)
}

// Before returns a writer that removes the countdown before it writes to w.
func (c *Countdown) Before(w io.Writer) io.Writer { return afterCountdown{w, c} }

type afterCountdown struct {
	io.Writer
	shown *Countdown
}

func (a afterCountdown) Write(p []byte) (int, error) {
	a.shown.End()
	return a.Writer.Write(p)
}
