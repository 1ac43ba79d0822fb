package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestPacingLetsSmallJobsRun: the first half of a minute's requests isn't slowed
// down, and the rest is spread.
func TestPacingLetsSmallJobsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := clienttest.New(t, clienttest.InMemory(), perMinute(60), clienttest.WithClientOptions(client.WithPacing()))
		began := time.Now()
		var last time.Time
		var longest time.Duration
		for i := range 60 {
			if _, err := store.Client.GetLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
			if i == 29 {
				if got := time.Since(began); got > time.Second {
					t.Errorf("30 of 60 requests took %v, want almost no time", got)
				}
			} else if i > 29 {
				longest = max(longest, time.Since(last))
			}
			last = time.Now()
		}
		if got := time.Since(began); got < 50*time.Second || got > 61*time.Second {
			t.Errorf("60 of 60 requests took %v, want most of a minute", got)
		}
		if longest > 3*time.Second {
			t.Errorf("paused for %v, want the second half evenly spread", longest)
		}
	})
}

// TestPacingDoesNotSpreadDays: the rest of a day's requests are used when they are
// needed.
func TestPacingDoesNotSpreadDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses tally
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(responses.middleware),
			clienttest.WithClientOptions(client.WithPacing()),
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
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := store.Client.GetLimits(ctx)
		wantCode(t, err, animalstore.DailyQuotaExceeded)
		if got := responses.of(http.StatusTooManyRequests); got != 0 {
			t.Errorf("got %d refusals, want none: it is known that the day is used up", got)
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

// TestPacingThroughFaults: requests whose responses are lost may have been charged, and
// some responses describe another limit than the key's. Neither leads to a refusal.
func TestPacingThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses tally
		var n atomic.Int64
		trouble := []func(w http.ResponseWriter, r *http.Request, service http.Handler){
			func(_ http.ResponseWriter, r *http.Request, service http.Handler) {
				service.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			},
			func(w http.ResponseWriter, r *http.Request, service http.Handler) { // a proxy lost the response
				service.ServeHTTP(httptest.NewRecorder(), r)
				http.Error(w, "Sorry", http.StatusBadGateway)
			},
			func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { // storage is away: the key is not known
				w.Header().Set("X-RateLimit-Limit", "3000")
				w.Header().Set("X-RateLimit-Remaining", "2999")
				w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(time.Minute).Unix()))
				w.Header().Set("Retry-After", "1")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"code":"overloaded","message":"try again in a moment","status":503}`)
			},
		}
		store := clienttest.New(t, clienttest.InMemory(), perMinute(20),
			clienttest.WithClientOptions(client.WithPacing(), client.WithMaxAttempts(50)),
			clienttest.WithMiddleware(func(service http.Handler) http.Handler {
				service = responses.middleware(service)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if i := n.Add(1); i%4 == 0 {
						trouble[int(i/4)%len(trouble)](w, r, service)
						return
					}
					service.ServeHTTP(w, r)
				})
			}))
		if err := inParallel(6, 150, func(int) error { return only(store.Client.GetLimits(t.Context())) }); err != nil {
			t.Error(err)
		}
		if got := responses.of(http.StatusTooManyRequests); got > 0 {
			t.Errorf("got %d refusals of %d, want none", got, responses.total())
		}
	})
}
