package webhook

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// slowClock is a store whose clock is a minute ahead. It reads it at the end of an
// operation, which takes a while now and then.
type slowClock struct {
	fakeStore
	looks int
}

func (s *slowClock) WebhookWork(context.Context, animalstore.Time) (db.WebhookWork, error) {
	if s.looks++; s.looks%2 == 0 {
		time.Sleep(2 * time.Second)
	}
	return db.WebhookWork{Webhooks: true, Clock: animalstore.At(time.Now().Add(time.Minute))}, nil
}

// TestSharedClockIsSteady: the clock doesn't jump after a slow look, which says little
// about the time. Otherwise the durations of attempts would jump too.
func TestSharedClockIsSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorker(Config{Store: &slowClock{}, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Log: slog.New(slog.DiscardHandler), SharedClock: true})
		for look := range 6 {
			w.poll(t.Context(), t.Context())
			if got := time.Until(w.now()); (got - time.Minute).Abs() > time.Millisecond {
				t.Errorf("after look %d the worker's clock is ahead by %v, want a minute", look, got)
			}
		}
	})
}
