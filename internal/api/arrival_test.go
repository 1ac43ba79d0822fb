package api

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowUploads: an upload is cut off only if it is slow and another one waits for its
// turn.
func TestSlowUploads(t *testing.T) {
	for _, c := range []struct {
		name    string
		rate    int // bytes per tenth of a second
		waiting int
		cutOff  int // at least, or none
	}{
		{"slow, alone", 1, 0, 0},
		{"slow, one waits", 1, 1, 1},
		{"slow, three wait", 1, 3, 3},
		{"fast enough, one waits", slowestUpload / 15, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUploads()
				results := make(chan bool, maxUploads)
				var all sync.WaitGroup
				defer all.Wait()
				for key := range int64(maxUploads) {
					all.Go(func() {
						end, err := u.begin(t.Context(), key)
						if err != nil {
							t.Error(err)
							return
						}
						defer end()
						body := &steady{rate: c.rate, until: time.Now().Add(20 * time.Second)}
						a := u.watch(body, body.cutOff)
						_, err = io.Copy(io.Discard, a)
						tooSlow := u.unwatch(a)
						if tooSlow != (err != nil) {
							t.Errorf("got error %v, too slow: %t", err, tooSlow)
						}
						results <- tooSlow
					})
				}
				synctest.Wait()
				for key := range int64(c.waiting) {
					all.Go(func() {
						end, err := u.begin(t.Context(), maxUploads+key)
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(30 * time.Second)
						end()
					})
				}
				cutOff := 0
				for range maxUploads {
					if <-results {
						cutOff++
					}
				}
				// Others may be cut off before the turn of the first is taken: here, all of them
				// are checked at the same instant.
				if cutOff < c.cutOff || c.cutOff == 0 && cutOff > 0 || u.leaving != 0 {
					t.Errorf("%d uploads were cut off and %d are leaving, want at least %d (if 0, none) and none", cutOff, u.leaving, c.cutOff)
				}
			})
		})
	}
}

// steady is a body that arrives at a rate until a time.
type steady struct {
	rate  int // bytes per tenth of a second
	until time.Time
	cut   atomic.Bool
}

func (s *steady) cutOff() { s.cut.Store(true) }

func (s *steady) Read(p []byte) (int, error) {
	time.Sleep(time.Second / 10)
	switch {
	case s.cut.Load():
		return 0, errors.New("deadline exceeded")
	case time.Now().After(s.until):
		return 0, io.EOF
	}
	return min(len(p), s.rate), nil
}
