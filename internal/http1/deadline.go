package http1

import (
	"errors"
	"os"
	"sync"
	"time"
)

// maxTimer is the longest a timer is set for, however late the deadline is. It is
// the earliest deadline that a request usually sets.
const maxTimer = 5 * time.Second

// deadline is the time at which reads or writes must fail. The zero time means
// never.
//
// A request sets several deadlines; under net/http half a dozen. Each would move a
// timer, though nearly every one is later than the one before. So a later
// deadline is only stored, and the timer is set again if it fires too early.
type deadline struct {
	arm func(time.Time) error // sets the deadline of the underlying connection

	mu     sync.Mutex
	wanted time.Time
	armed  time.Time // as passed to arm: never later than wanted
}

func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	switch {
	case interrupts(d.armed) && !interrupts(t):
		return d.rearm()
	case t.IsZero(), !d.armed.IsZero() && !t.Before(d.armed):
		return nil
	}
	d.armed = t
	return d.arm(t)
}

// interrupts reports whether t is so long ago that it was set to end a running
// read, which is how net/http gets its connection back.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1e6 }

// extend reports whether err comes from a timer that fired before the deadline.
// In that case it sets the timer again, and the caller should retry.
func (d *deadline) extend(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	return d.rearm() == nil
}

// rearm sets the timer for the wanted deadline, or for maxTimer if that is sooner.
func (d *deadline) rearm() error {
	d.armed = time.Now().Add(maxTimer)
	if !d.wanted.IsZero() && d.wanted.Before(d.armed) {
		d.armed = d.wanted
	}
	return d.arm(d.armed)
}
