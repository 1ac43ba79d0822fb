package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// resultStore is a fakeStore with deliveries to claim, which notes what becomes of them.
type resultStore struct {
	fakeStore
	due      []db.ClaimedDelivery
	failures int           // of FinishDelivery, before it works
	takes    time.Duration // by FinishDelivery
	more     int           // how often there are more events to dispatch

	finished []int64 // deliveries whose result was stored
	given    []int64 // deliveries that were given back
}

func (s *resultStore) DispatchEvents(ctx context.Context, at animalstore.Time, max int) (bool, error) {
	if _, err := s.fakeStore.DispatchEvents(ctx, at, max); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more--
	s.next.Events = s.more >= 0
	return s.more >= 0, nil
}

func (s *resultStore) ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) ([]db.ClaimedDelivery, error) {
	if _, err := s.fakeStore.ClaimDeliveries(ctx, now, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.due
	s.due = nil
	return due, nil
}

func (s *resultStore) FinishDelivery(_ context.Context, r db.DeliveryResult, _, lease animalstore.Time) (*db.ClaimedDelivery, animalstore.Reason, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		s.failures--
		return nil, "", errors.New("the storage is gone")
	}
	s.finished = append(s.finished, r.Delivery.ID)
	if lease.IsZero() {
		return nil, "", nil
	}
	following := *r.Delivery
	following.ID++
	return &following, "", nil
}

func (s *resultStore) ReleaseDelivery(_ context.Context, due db.ClaimedDelivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, due.ID)
	return nil
}

// ignored observes nothing.
type ignored struct{}

func (ignored) WebhookAttempt(string) {}
func (ignored) WebhookDisabled()      {}

// startWorker runs a worker whose attempts take as long as the test says, and fail,
// because they lead nowhere.
func startWorker(s Store, log io.Writer, attempt time.Duration) (stop func()) {
	sender := NewSender(SenderConfig{Networks: NewNetworks(nil)})
	w := NewWorker(Config{Store: s, Sender: sender, Observer: ignored{}, Log: slog.New(slog.NewTextHandler(log, nil)), Grace: time.Second})
	// The sender takes the time before and after an attempt.
	sender.now = func() time.Time { time.Sleep(attempt / 2); return time.Now() }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	return func() { cancel(); <-done }
}

func dueStore() *resultStore {
	return &resultStore{fakeStore: fakeStore{next: db.WebhookWork{Webhooks: true, Due: true}}, due: []db.ClaimedDelivery{*due("nowhere")}}
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
			s.failures = test.failures
			var log bytes.Buffer
			stop := startWorker(s, &log, 500*time.Millisecond)
			time.Sleep(finishAttempts * time.Second)
			stop()
			if stored := len(s.finished) > 0 && s.finished[0] == 1; stored != test.stored {
				t.Errorf("%d failures: the results of %v were stored, want that of 1: %t", test.failures, s.finished, test.stored)
			}
			if gaveUp := strings.Contains(log.String(), "it is sent again after its lease"); gaveUp == test.stored {
				t.Errorf("%d failures: got the log %q", test.failures, log.String())
			}
		})
	}
}

// TestWorkerStops: a worker that stops finishes the attempts that end soon, releases the
// other deliveries and claims no more.
func TestWorkerStops(t *testing.T) {
	for _, test := range []struct {
		name            string
		attempt, finish time.Duration
		stored, given   []int64
	}{
		{"a short attempt", 200 * time.Millisecond, 0, []int64{1}, nil},
		{"one that takes too long", time.Minute, 0, nil, []int64{1}},
		{"the next one is already claimed", 20 * time.Millisecond, 200 * time.Millisecond, []int64{1}, []int64{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := dueStore()
				s.takes = test.finish
				stop := startWorker(s, io.Discard, test.attempt)
				time.Sleep(100 * time.Millisecond)
				stop()
				if !slices.Equal(s.finished, test.stored) || !slices.Equal(s.given, test.given) {
					t.Errorf("results of %v were stored, %v were given back, want %v and %v", s.finished, s.given, test.stored, test.given)
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
				stored = d.NextLease // even if the answer is lost
				if left--; left >= 0 {
					return errors.New("the answer is lost")
				}
				if remains := time.Until(stored.Time); remains > 20*time.Second || remains < 5*time.Second {
					t.Errorf("after %v the lease lasts another %v, want between 5 and 20 s", time.Since(began), remains)
				}
				return nil
			}
			s.due[0].Lease = animalstore.At(began.Add(leaseTime))
			stop := startWorker(s, io.Discard, db.AttemptTimeout)
			time.Sleep(db.AttemptTimeout - time.Second)
			s.mu.Lock()
			if remains := time.Until(stored.Time); remains > 20*time.Second || remains < 5*time.Second || len(s.renewals) != 2 {
				t.Errorf("%d renewals, and the lease lasts another %v, want 2, and 5 to 20 s", len(s.renewals), remains)
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

// TestDispatchGoesOn: if there are more events than become deliveries at once, the rest
// follows soon.
func TestDispatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &resultStore{fakeStore: fakeStore{next: db.WebhookWork{Webhooks: true, Events: true}}, more: 5}
		stop := startWorker(s, io.Discard, 0)
		time.Sleep(pollEvery)
		stop()
		if len(s.dispatched) != 6 {
			t.Errorf("dispatched %d times in %v, want 6", len(s.dispatched), pollEvery)
		}
	})
}
