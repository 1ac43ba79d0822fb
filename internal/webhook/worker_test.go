package webhook

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// fakeStore has work that tests set, and notes when a worker asks for it.
type fakeStore struct {
	mu         sync.Mutex
	next       db.WebhookWork
	ahead      time.Duration // of the shared clock, if not zero
	looks      []time.Time
	dispatched []time.Time
	claims     []animalstore.Time // the lease of each
	renewals   []db.ClaimedDelivery
	hang       bool // until the context ends
	renew      func(db.ClaimedDelivery) error
	finish     func(db.DeliveryResult) (*db.ClaimedDelivery, animalstore.Reason, error)
}

func (s *fakeStore) set(w db.WebhookWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.looks, s.dispatched, s.claims = w, nil, nil, nil
}

func (s *fakeStore) WebhookWork(ctx context.Context, _ animalstore.Time) (db.WebhookWork, error) {
	if s.hang {
		<-ctx.Done()
		return db.WebhookWork{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, time.Now())
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
	return false, nil
}

func (s *fakeStore) ClaimDeliveries(_ context.Context, _, lease animalstore.Time) ([]db.ClaimedDelivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = append(s.claims, lease)
	return nil, nil
}

func (s *fakeStore) FinishDelivery(_ context.Context, r db.DeliveryResult, _, _ animalstore.Time) (*db.ClaimedDelivery, animalstore.Reason, error) {
	if s.finish == nil {
		return nil, "", nil
	}
	return s.finish(r)
}

func (s *fakeStore) RenewDelivery(_ context.Context, due db.ClaimedDelivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals = append(s.renewals, due)
	if s.renew == nil {
		return nil
	}
	return s.renew(due)
}

func (s *fakeStore) ReleaseDelivery(context.Context, db.ClaimedDelivery) error {
	return nil
}

// runWorker runs a worker until the test ends.
func runWorker(t *testing.T, s *fakeStore) *Worker {
	t.Helper()
	w := NewWorker(Config{Store: s, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Log: slog.New(slog.DiscardHandler), SharedClock: true})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	time.Sleep(minPollInterval)
	return w
}

// TestHangingStore: a store that never responds is reported once.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := NewWorker(Config{Store: &fakeStore{hang: true}, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), 4*storeTimeout)
		defer cancel()
		w.Run(ctx)
		if n := strings.Count(log.String(), "cannot deliver webhook events"); n != 1 {
			t.Errorf("reported %d times, want once:\n%s", n, &log)
		}
	})
}

// TestNotifiedWorker: an event is dispatched when the worker is notified, not when it
// would have looked anyway.
func TestNotifiedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{next: db.WebhookWork{Webhooks: true}}
		w := runWorker(t, s)
		for range 10 {
			time.Sleep(pollEvery / 3)
			s.set(db.WebhookWork{Webhooks: true, Events: true})
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

// TestWorkerWithoutWebhooks: however often it is notified, it looks a few times a second.
func TestWorkerWithoutWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{}
		w := runWorker(t, s)
		s.set(db.WebhookWork{})
		const seconds = 10
		for range seconds * 1000 {
			w.Notify()
			time.Sleep(time.Millisecond)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if most := int(seconds*time.Second/idlePollInterval) + 1; len(s.looks) > most || len(s.looks) < most/2 {
			t.Errorf("%d looks in %d s, want about %d", len(s.looks), seconds, most)
		}
	})
}

// TestWorkerWaitsForTheNext: it looks when a delivery becomes due.
func TestWorkerWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{next: db.WebhookWork{Webhooks: true}}
		runWorker(t, s)
		due := animalstore.At(time.Now().Add(2*pollEvery + 77*time.Millisecond))
		s.set(db.WebhookWork{Webhooks: true, Next: due})
		time.Sleep(time.Until(due.Time) + 2*minPollInterval)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, at := range s.looks {
			if late := at.Sub(due.Time); late >= 0 && late <= minPollInterval {
				return
			}
		}
		t.Errorf("looked at %v, want %v", s.looks, due)
	})
}

// TestSharedClock: leases end by the clock that all processes share, whatever their own
// clocks say.
func TestSharedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
			s := &fakeStore{next: db.WebhookWork{Webhooks: true, Due: true}, ahead: ahead}
			w := runWorker(t, s)
			s.mu.Lock()
			want := time.Now().Add(ahead + leaseTime)
			if len(s.claims) != 1 || want.Sub(s.claims[0].Time).Abs() > time.Second {
				t.Errorf("got the leases %v, want one until %v", s.claims, want)
			}
			s.mu.Unlock()
			if got := w.Sender.now(); got.Sub(time.Now().Add(ahead)).Abs() > time.Second {
				t.Errorf("the sender has the time %v, want the shared one", got)
			}
		}
	})
}
