package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"animalstore/client"
)

// countdown tells how long a command still waits: on a terminal with one line
// that is written anew every second, elsewhere with a line for each wait.
type countdown struct {
	w      io.Writer
	screen screen

	mu   sync.Mutex
	stop chan struct{} // closed to end the line that is shown; nil: there is none
	done chan struct{} // closed when it is gone
}

func newCountdown(w io.Writer) *countdown {
	return &countdown{w: w, screen: screenOf(w)}
}

// shortWait is not worth telling.
const shortWait = time.Second

// begin tells of a wait. It is a hook of [client.WithOnWait].
func (c *countdown) begin(wait client.Wait) {
	c.end()
	if wait.For < shortWait {
		return
	}
	reason, then := waitReason(wait.Reason)
	if !c.screen.rewrites {
		fmt.Fprintf(c.w, "%s: %s in %s\n", reason, then, span(wait.For))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stop, done := make(chan struct{}), make(chan struct{})
	c.stop, c.done = stop, done
	until := time.Now().Add(wait.For)
	go func() {
		defer close(done)
		tick, over := time.NewTicker(time.Second), time.NewTimer(wait.For)
		defer tick.Stop()
		defer over.Stop()
		for left := time.Until(until); left > 0; left = time.Until(until) {
			c.line(fmt.Sprintf("%s: %s in %s (Ctrl-C stops)", reason, then, span(left)))
			select {
			case <-tick.C:
			case <-over.C:
			case <-stop:
				until = time.Time{}
			}
		}
		c.line("")
	}()
}

// end takes the line away, so that something else can be printed.
func (c *countdown) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		close(c.stop)
		<-c.done
		c.stop, c.done = nil, nil
	}
}

// line writes over the line the cursor is in. A longer one than the screen is
// wide could not be written over.
func (c *countdown) line(text string) {
	if c.screen.width > 0 {
		text = cut(text, c.screen.width-1)
	}
	fmt.Fprint(c.w, "\r\x1b[K", text)
}

// waitReason says why the client waits, and what it does afterwards.
func waitReason(err error) (reason, then string) {
	var limit *client.RateLimitError
	if errors.As(err, &limit) {
		return limitReached(limit), "going on"
	}
	return "The server did not serve this (" + visible(rootCause(err)) + ")", "trying again"
}

// limitReached says which limit is used up.
func limitReached(e *client.RateLimitError) string {
	switch e.Window {
	case client.WindowMinute:
		return "This minute's " + requests(e.Limit) + " used up"
	case client.WindowDay:
		return "Today's (UTC) " + requests(e.Limit) + " used up"
	case client.WindowBan:
		return "The key is banned for a while"
	}
	return "The server asks to wait"
}

func requests(n int64) string {
	switch n {
	case 0: // the server did not tell
		return "requests are"
	case 1:
		return "only request is"
	}
	return fmt.Sprintf("%d requests are", n)
}

// span is a duration as a person says it, rounded up.
func span(d time.Duration) string {
	seconds := int64((d + time.Second - 1) / time.Second)
	minutes, hours := seconds/60, seconds/3600
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case hours == 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d h %d min", hours, minutes%60)
}

// afterCountdown takes the countdown away before it writes.
type afterCountdown struct {
	io.Writer
	shown *countdown
}

func (a afterCountdown) Write(p []byte) (int, error) {
	a.shown.end()
	return a.Writer.Write(p)
}
