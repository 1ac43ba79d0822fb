package testenv

import (
	"sync"
	"time"
)

// Clock is a clock that tests move.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the instant at which most tests begin.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)} }

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set makes the clock show t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }
