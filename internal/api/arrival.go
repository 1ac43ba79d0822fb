package api

import (
	"io"
	"sync/atomic"
	"time"
)

// While others wait for a turn to upload, an upload loses its own if fewer than
// slowestUpload bytes arrive in an arrivalInterval. Otherwise a few clients that send a byte
// now and then could keep all others from uploading.
const (
	slowestUpload   = 128 << 10
	arrivalInterval = 2 * time.Second
)

// arrival is the body of an upload while it is received.
type arrival struct {
	io.Reader
	received atomic.Int64

	// Guarded by the mutex of uploads.
	checked int64 // of received, at the last check
	timer   *time.Timer
	cutOff  func() // makes Read fail
	tooSlow bool   // was cut off
	done    bool
}

func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.received.Add(int64(n))
	return n, err
}

// watch returns the body to read instead of this one. The caller must call unwatch
// afterwards.
func (u *uploads) watch(body io.Reader, cutOff func()) *arrival {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := &arrival{Reader: body, cutOff: cutOff}
	a.timer = time.AfterFunc(arrivalInterval, func() { u.check(a) })
	return a
}

// check cuts an upload off if it is too slow and another one can have its turn.
func (u *uploads) check(a *arrival) {
	waiting := u.all.Waiting()
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.done {
		return
	}
	received := a.received.Load()
	if received-a.checked < slowestUpload && u.leaving < waiting {
		a.tooSlow = true
		u.leaving++
		a.cutOff()
		return
	}
	a.checked = received
	a.timer.Reset(arrivalInterval)
}

// unwatch reports whether the upload was cut off.
func (u *uploads) unwatch(a *arrival) (tooSlow bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a.timer.Stop()
	a.done = true
	if a.tooSlow {
		u.leaving--
	}
	return a.tooSlow
}
