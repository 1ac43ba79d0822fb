package http1

import (
	"errors"
	"os"
	"sync"
	"time"
)

// lookAgain is how far ahead a timer is set at most, however late the deadline:
// as far as the soonest deadline that a request usually brings.
const lookAgain = 5 * time.Second

// deadline is when reads or writes have to fail. Zero times are never.
//
// A request brings several of them, net/http's half a dozen. Each would move a
// timer, though nearly all are later than the one before. So a later deadline is
// only remembered. When the timer goes off too early, it is set anew.
type deadline struct {
	arm func(time.Time) error // sets the connection's

	mu     sync.Mutex
	wanted time.Time
	armed  time.Time // what the connection was told: never later than wanted
}

func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	switch {
	case interrupts(d.armed) && !interrupts(t):
		return d.wait()
	case t.IsZero(), !d.armed.IsZero() && !t.Before(d.armed):
		return nil
	}
	d.armed = t
	return d.arm(t)
}

// interrupts reports whether t is so long ago that it was set to end a read that
// is under way, which is how net/http gets its connection back.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1e6 }

// early reports whether err only says that an older deadline passed, and then has
// the connection wait on.
func (d *deadline) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	return d.wait() == nil
}

// wait sets the timer for the deadline that is wanted, or sooner.
func (d *deadline) wait() error {
	d.armed = time.Now().Add(lookAgain)
	if !d.wanted.IsZero() && d.wanted.Before(d.armed) {
		d.armed = d.wanted
	}
	return d.arm(d.armed)
}
