package webhook

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
)

// TestResultsAreStoredTogether: results that come while others of the same webhook are
// being stored share the next transaction, and each attempt goes on with another
// delivery. Other webhooks don't wait.
func TestResultsAreStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type storing struct {
			ids []int64
			end chan error
		}
		begun := make(chan storing, 10)
		s := &fakeStore{finish: func(results []animalstore.DeliveryResult) (next []animalstore.DueDelivery, _ animalstore.Reason, _ error) {
			b := storing{end: make(chan error)}
			for _, r := range results {
				b.ids = append(b.ids, r.Delivery.ID)
				if r.Delivery.ID != 4 { // there is one fewer
					next = append(next, animalstore.DueDelivery{ID: 100 * r.Delivery.ID})
				}
			}
			begun <- b
			return next, "", <-b.end
		}}
		w := NewWorker(Config{Store: s, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Log: slog.New(slog.DiscardHandler)})
		var mu sync.Mutex
		next := map[int64]int64{} // after each delivery
		var attempts sync.WaitGroup
		finish := func(webhookID, id int64) {
			attempts.Go(func() {
				d := w.finish(animalstore.DeliveryResult{Delivery: &animalstore.DueDelivery{ID: id, WebhookID: webhookID}}, id > 10)
				mu.Lock()
				defer mu.Unlock()
				if next[id] = 0; d != nil {
					next[id] = d.ID
				}
			})
			synctest.Wait()
		}
		begins := func(want ...int64) chan error {
			t.Helper()
			b := <-begun
			synctest.Wait()
			if !slices.Equal(b.ids, want) {
				t.Fatalf("a transaction of %d began, want %d", b.ids, want)
			}
			return b.end
		}
		finish(1, 1)
		first := begins(1)
		finish(1, 2)
		finish(1, 3)
		finish(1, 4)
		if len(begun) > 0 {
			t.Fatal("two transactions of a webhook at once")
		}
		finish(2, 5)
		other := begins(5)
		first <- errors.New("the disk is full") // it is tried again
		time.Sleep(2 * time.Second)
		first = begins(1)
		first <- nil
		second := begins(2, 3, 4)
		other <- nil
		second <- nil
		attempts.Wait()

		// With a backlog, a result waits for others, and longer if the store is slow or others
		// write.
		const ms = time.Millisecond
		for _, one := range []struct {
			busy       bool
			took, want time.Duration
		}{{false, ms, 2 * ms}, {false, 3 * ms, 6 * ms}, {true, ms, 4 * ms}, {true, time.Minute, 10 * ms}} {
			w.took.Store(int64(one.took))
			s.set(animalstore.WebhookWork{Webhooks: true, Events: one.busy})
			w.look(t.Context(), t.Context())
			began := time.Now()
			for id := range int64(3) {
				finish(3, 11+id)
			}
			end := begins(11, 12, 13)
			if got := time.Since(began); got != one.want {
				t.Errorf("%+v: the next results were stored after %v", one, got)
			}
			end <- nil
			attempts.Wait()
		}
		want := map[int64]int64{1: 100, 2: 200, 3: 300, 4: 0, 5: 500}
		for id := range want {
			if next[id] != want[id] {
				t.Errorf("after %d comes %d, want %d", id, next[id], want[id])
			}
		}
		if len(w.finishing) > 0 {
			t.Errorf("%d webhooks are being finished afterwards", len(w.finishing))
		}
	})
}
