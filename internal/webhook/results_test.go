package webhook

import (
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func dueStore() *fakeStore {
	return &fakeStore{next: db.WebhookWork{Webhooks: true, Due: true}, due: []db.ClaimedDelivery{*due("nowhere")}}
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

// TestLeases: a lease lasts while its delivery is being sent, and ends within 20 seconds
// of a death. A renewal that fails is repeated, until it is known which lease is stored.
func TestLeases(t *testing.T) {
	for _, failures := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := dueStore()
			began := time.Now()
			stored, left := animalstore.Time{}, failures
			s.renew = func(d db.ClaimedDelivery) error {
				if !d.Holds(stored) && !stored.IsZero() {
					t.Errorf("renewed %v or %v to %v, but %v is stored", d.Lease, d.NextLease, d.NextLease, stored)
				}
				stored = d.NextLease // even if the response is lost
				if left--; left >= 0 {
					return errors.New("the response is lost")
				}
				if remains := time.Until(stored.Time); remains > 20*time.Second || remains < 5*time.Second {
					t.Errorf("after %v the lease lasts another %v, want between 5 and 20 s", time.Since(began), remains)
				}
				return nil
			}
			s.due[0].Lease = animalstore.At(began.Add(leaseTime))
			stop := startSlow(s, db.AttemptTimeout)
			time.Sleep(db.AttemptTimeout - time.Second)
			s.mu.Lock()
			if remains := time.Until(stored.Time); remains > 20*time.Second || remains < 5*time.Second || s.renewals != 2 {
				t.Errorf("%d renewals, and the lease lasts another %v, want 2, and 5 to 20 s", s.renewals, remains)
			}
			s.mu.Unlock()
			time.Sleep(2 * time.Second)
			stop()
			if len(s.finished) == 0 {
				t.Error("the result was not stored")
			}
		})
	}
	if leaseTime > 20*time.Second-pollEvery {
		t.Errorf("a lease of %v ends more than 20 s after a death", leaseTime)
	}
}
