package client_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestPacingDoesNotSpreadDays: the rest of a day's requests are used when they are
// needed.
func TestPacingDoesNotSpreadDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithClientOptions(client.WithPacing()),
			clienttest.WithPlan(animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 10, PerDay: 15}))
		began := time.Now()
		for range 15 {
			if _, err := store.Client.GetLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(began); got > 2*time.Minute {
			t.Errorf("the 15 requests of a day took %v, want two minutes at most", got)
		}
	})
}

// TestPacingBesideOthers: while somebody else uses the same key, the paced client
// neither reaches the limit nor uses up everything.
func TestPacingBesideOthers(t *testing.T) {
	tests := map[string]struct {
		every time.Duration
		burst int
	}{
		"three at once":      {20 * time.Second, 3},
		"half of everything": {6 * time.Second, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := &tally{agent: "ours"}, &tally{agent: "theirs"}
				store := clienttest.New(t, clienttest.InMemory(), perMinute(20),
					clienttest.WithMiddleware(func(h http.Handler) http.Handler { return ours.middleware(theirs.middleware(h)) }),
					clienttest.WithClientOptions(client.WithPacing(), client.WithUserAgent("ours")))
				other := store.NewClient(store.Key, client.WithUserAgent("theirs"), client.WithMaxAttempts(1))
				ctx, done := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					time.Sleep(3 * time.Second) // somewhere in the window
					for ctx.Err() == nil {
						for range test.burst {
							other.GetLimits(ctx) // the tally counts its responses
						}
						select {
						case <-time.After(test.every):
						case <-ctx.Done():
						}
					}
				})
				err := inParallel(4, 200, func(int) error { return only(store.Client.GetLimits(t.Context())) })
				done()
				wg.Wait()
				if err != nil {
					t.Error(err)
				}
				if got := ours.of(http.StatusTooManyRequests); got > 0 {
					t.Errorf("got %d refusals of %d, want none", got, ours.total())
				}
				if got := theirs.of(http.StatusTooManyRequests); got > 0 {
					t.Errorf("others got %d refusals of %d, want none", got, theirs.total())
				}
			})
		})
	}
}
