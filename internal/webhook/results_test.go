package webhook

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/db"
)

func dueStore() *fakeStore {
	return &fakeStore{next: db.WebhookWork{Due: true}, due: []db.ClaimedDelivery{*due("nowhere")}}
}

// startSlow runs a worker whose attempts take as long as the test says, and fail, because
// they lead nowhere.
func startSlow(s *fakeStore, attempt time.Duration) (stop func()) {
	w := newWorker(s, io.Discard)
	// The sender reads the clock before and after an attempt.
	w.Sender.now = func() time.Time { time.Sleep(attempt / 2); return time.Now() }
	return start(w)
}

// TestResultOutlastsTheStorage: while the storage fails, a worker keeps the result of an
// attempt and retries storing it, but not forever.
func TestResultOutlastsTheStorage(t *testing.T) {
	for _, test := range []struct {
		failures int
		stored   bool
	}{{finishAttempts - 1, true}, {finishAttempts, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := dueStore()
			s.finishFailures = test.failures
			stop := startSlow(s, 500*time.Millisecond)
			time.Sleep(finishAttempts * time.Second)
			stop()
			if stored := slices.Contains(s.finished, 1); stored != test.stored {
				t.Errorf("%d failures: the results of %v were stored, want that of 1: %t", test.failures, s.finished, test.stored)
			}
		})
	}
}

// TestWorkerStops: a worker that stops finishes the attempts that end soon, releases the
// other deliveries and claims no more.
func TestWorkerStops(t *testing.T) {
	for _, test := range []struct {
		name             string
		attempt, finish  time.Duration
		stored, released []int64
	}{
		{"a short attempt", 200 * time.Millisecond, 0, []int64{1}, nil},
		{"one that takes too long", time.Minute, 0, nil, []int64{1}},
		{"the next one is already claimed", 20 * time.Millisecond, 200 * time.Millisecond, []int64{1}, []int64{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := dueStore()
				s.finishTakes = test.finish
				stop := startSlow(s, test.attempt)
				time.Sleep(100 * time.Millisecond)
				stop()
				if !slices.Equal(s.finished, test.stored) || !slices.Equal(s.released, test.released) {
					t.Errorf("results of %v were stored, %v were released, want %v and %v", s.finished, s.released, test.stored, test.released)
				}
			})
		})
	}
}

// TestSlowStore: an attempt begins only if it ends before its lease. What a slow store has
// claimed by then is sent, and what it claims too late is released.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := dueStore()
		s.claimTakes, s.finishTakes = time.Minute, 4*time.Second
		stop := startSlow(s, time.Second)
		time.Sleep(10 * time.Second)
		stop()
		if !slices.Equal(s.finished, []int64{1}) || !slices.Equal(s.released, []int64{2}) {
			t.Errorf("results of %v were stored, %v were released, want those of 1 and 2", s.finished, s.released)
		}
	})
}

// TestLeases: a lease lasts until a result is stored, and another worker takes over within
// 20 seconds of a death.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := dueStore()
		stop := startSlow(s, db.AttemptTimeout)
		defer stop()
		time.Sleep(db.AttemptTimeout + time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.claims) != 1 || len(s.finished) != 1 || time.Until(s.claims[0].Time) < time.Second {
			t.Errorf("%d results after %v, with leases until %v, want one, with time left to store it", len(s.finished), db.AttemptTimeout, s.claims)
		}
	})
	if leaseTime > 20*time.Second-pollEvery {
		t.Errorf("a lease of %v ends more than 20 s after a death", leaseTime)
	}
}
