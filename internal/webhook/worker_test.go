package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// fakeStore has work that tests set, and records what a worker does.
type fakeStore struct {
	mu    sync.Mutex
	next  db.WebhookWork
	due   []db.ClaimedDelivery
	more  int           // how often there are more events to dispatch
	ahead time.Duration // of the shared clock, if not zero
	hang  bool          // until the context ends
	slow  time.Duration // how long every second poll takes

	finishFailures int           // of FinishDelivery, before it works
	finishTakes    time.Duration // by FinishDelivery
	claimTakes     time.Duration // by ClaimDeliveries

	polls      []time.Time
	dispatched []time.Time
	claims     []animalstore.Time // the lease of each
	finished   []int64            // deliveries whose result was stored
	released   []int64
}

func (s *fakeStore) set(w db.WebhookWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.polls, s.dispatched, s.claims = w, nil, nil, nil
}

func (s *fakeStore) WebhookWork(ctx context.Context, _ animalstore.Time) (db.WebhookWork, error) {
	if s.hang {
		<-ctx.Done()
		return db.WebhookWork{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = append(s.polls, time.Now())
	if len(s.polls)%2 == 0 {
		time.Sleep(s.slow)
	}
	w := s.next
	if s.ahead != 0 {
		w.Clock = animalstore.At(time.Now().Add(s.ahead))
	}
	s.next.Events, s.next.Due = false, false
	return w, nil
}

func (s *fakeStore) DispatchEvents(context.Context, animalstore.Time, int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatched = append(s.dispatched, time.Now())
	s.more--
	s.next.Events = s.more >= 0
	return s.more >= 0, nil
}

// ClaimDeliveries returns what it has claimed by the end of ctx.
func (s *fakeStore) ClaimDeliveries(ctx context.Context, _, lease animalstore.Time) ([]db.ClaimedDelivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimTakes > 0 {
		select {
		case <-time.After(s.claimTakes):
		case <-ctx.Done():
		}
	}
	s.claims = append(s.claims, lease)
	due := s.due
	s.due = nil
	for i := range due {
		due[i].Lease = lease
	}
	return due, ctx.Err()
}

// FinishDelivery returns another delivery of the webhook, if the worker claims one.
func (s *fakeStore) FinishDelivery(_ context.Context, r db.DeliveryResult, _, lease animalstore.Time) (*db.ClaimedDelivery, animalstore.OptionalText, error) {
	time.Sleep(s.finishTakes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finishFailures > 0 {
		s.finishFailures--
		return nil, "", errors.New("the storage is gone")
	}
	s.finished = append(s.finished, r.Delivery.ID)
	if lease.IsZero() {
		return nil, "", nil
	}
	following := *r.Delivery
	following.ID++
	following.Lease = lease
	return &following, "", nil
}

func (s *fakeStore) ReleaseDelivery(_ context.Context, due db.ClaimedDelivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, due.ID)
	return nil
}

// ignored observes nothing.
type ignored struct{}

func (ignored) WebhookAttempt(string) {}
func (ignored) WebhookDisabled()      {}

func newWorker(s *fakeStore, log io.Writer) *Worker {
	return NewWorker(Config{
		Store: s, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Observer: ignored{},
		Log: slog.New(slog.NewTextHandler(log, nil)), SharedClock: true, Grace: time.Second,
	})
}

// start runs a worker until stop is called.
func start(w *Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	return func() { cancel(); <-done }
}

// TestHangingStore: a store that never responds is reported once.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorker(&fakeStore{hang: true}, &log)
		ctx, cancel := context.WithTimeout(t.Context(), 4*storeTimeout)
		defer cancel()
		w.Run(ctx)
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("reported %d times, want once:\n%s", n, &log)
		}
	})
}

// TestResultsNotStored: results that can't be stored are reported once, until that works again.
func TestResultsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &fakeStore{}
		w := newWorker(s, &log)
		for range 2 {
			s.finishFailures = 3 * finishAttempts
			for id := range int64(4) { // the last one is stored
				w.finish(t.Context(), db.DeliveryResult{Delivery: &db.ClaimedDelivery{ID: id}})
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 2 {
			t.Errorf("reported %d times, want twice:\n%s", n, &log)
		}
	})
}

// TestNotifiedWorker: an event is dispatched when the worker is notified, not when it
// would have polled anyway.
func TestNotifiedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{next: db.WebhookWork{}}
		w := newWorker(s, io.Discard)
		defer start(w)()
		for range 10 {
			time.Sleep(pollEvery / 3)
			s.set(db.WebhookWork{Events: true})
			began := time.Now()
			w.Notify()
			time.Sleep(2 * minPollInterval)
			s.mu.Lock()
			if len(s.dispatched) != 1 || s.dispatched[0].Sub(began) > minPollInterval || len(s.claims) != 1 {
				t.Errorf("dispatched at %v after %v, claimed %d times, want once and at once", s.dispatched, began, len(s.claims))
			}
			s.mu.Unlock()
		}
	})
}

// TestWorkerWaitsForTheNext: it polls when a delivery becomes due.
func TestWorkerWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := animalstore.At(time.Now().Add(2*pollEvery + 77*time.Millisecond))
		s := &fakeStore{next: db.WebhookWork{Next: due}}
		stop := start(newWorker(s, io.Discard))
		time.Sleep(time.Until(due.Time) + 2*minPollInterval)
		stop()
		for _, at := range s.polls {
			if late := at.Sub(due.Time); late >= 0 && late <= minPollInterval {
				return
			}
		}
		t.Errorf("polled at %v, want %v", s.polls, due)
	})
}

// TestDispatchGoesOn: if there are more events than become deliveries at once, the rest
// follows soon.
func TestDispatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{next: db.WebhookWork{Events: true}, more: 5}
		stop := start(newWorker(s, io.Discard))
		time.Sleep(pollEvery)
		stop()
		if len(s.dispatched) != 6 {
			t.Errorf("dispatched %d times in %v, want 6", len(s.dispatched), pollEvery)
		}
	})
}

// TestSharedClock: leases end by the clock that all processes share. A slow poll, which
// says little about the time, doesn't make it jump: durations of attempts would jump too.
func TestSharedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
			s := &fakeStore{ahead: ahead, slow: 2 * time.Second}
			w := newWorker(s, io.Discard)
			for i := range 4 {
				s.next = db.WebhookWork{Due: true}
				w.poll(t.Context(), t.Context())
				want := time.Now().Add(ahead)
				if off := w.Sender.now().Sub(want).Abs(); off > time.Millisecond {
					t.Errorf("poll %d: the sender's clock is off by %v", i, off)
				}
				if off := s.claims[i].Sub(want.Add(leaseTime)).Abs(); off > time.Millisecond {
					t.Errorf("poll %d: the lease is off by %v", i, off)
				}
			}
		}
	})
}
