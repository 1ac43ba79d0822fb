package api

import (
	"context"
	"sync"
	"time"

	"animalstore/internal/db"
)

// requestContext is the context of a request: it ends when the client
// disconnects or the request has taken too long. Most requests never wait for
// anything, so the timer is only created on the first call of Done.
type requestContext struct {
	context.Context // that of the connection
	deadline        time.Time
	caller          int64    // whose turn an operation of the database needs
	actor           db.Actor // who makes a change
	standby         *standby // answers a change that takes too long; may be nil

	mu     sync.Mutex
	timed  context.Context // nil until Done is called
	cancel context.CancelFunc
}

// Value returns the caller, the actor and the standby without an allocation.
func (c *requestContext) Value(key any) any {
	switch key {
	case db.CallerKey{}:
		return &c.caller
	case db.ActorKey{}:
		return &c.actor
	case db.StandbyKey{}:
		if c.standby != nil {
			return c.standby
		}
		return nil
	}
	return c.Context.Value(key)
}

func (c *requestContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.deadline)
	}
	return c.timed.Done()
}

func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		return c.timed.Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// detach lets the request continue when its client seems to have disconnected:
// it may only have closed the sending half of the connection. The deadline
// stays. Channels that Done returned before are closed.
func (c *requestContext) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Context = context.WithoutCancel(c.Context)
	c.stopTimer()
}

// restart gives the request its full time again. Channels that Done returned
// before are closed.
func (c *requestContext) restart(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = time.Now().Add(timeout)
	c.stopTimer()
}

// waited reports whether somebody asked to be told when the request ends.
func (c *requestContext) waited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timed != nil
}

// release frees the timer when the request is finished.
func (c *requestContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// stopTimer makes the next call of Done start a new timer.
func (c *requestContext) stopTimer() {
	if c.cancel != nil {
		c.cancel()
	}
	c.timed, c.cancel = nil, nil
}
