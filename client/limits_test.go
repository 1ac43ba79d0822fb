package client_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/testenv"
)

// TestManyCallsOnASmallPlan makes more calls than a plan allows in several windows, in
// fake time. They all succeed, none comes close to a ban, and there are at most as many
// refusals as window changes; with pacing there are none.
func TestManyCallsOnASmallPlan(t *testing.T) {
	tests := map[string]struct {
		limits     animalstore.Limits
		goroutines int
		paced      bool
		bare       bool          // as behind a proxy that drops unknown headers
		ahead      time.Duration // the clock of the service
	}{
		"10 a minute":       {animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}, 8, false, false, 0},
		"30 a day":          {animalstore.Limits{PerMinute: 10, PerDay: 30}, 1, false, false, 0},
		"no headers":        {animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}, 1, false, true, 0},
		"paced":             {animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}, 8, true, false, 0},
		"paced, 30 a day":   {animalstore.Limits{PerMinute: 10, PerDay: 30}, 8, true, false, 0},
		"paced, behind":     {animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}, 1, true, false, -time.Hour},
		"paced, ahead":      {animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}, 1, true, false, 300 * time.Millisecond},
		"paced, 1 a minute": {animalstore.Limits{PerMinute: 1, PerDay: 1 << 40}, 3, true, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var responses tally
				middleware := func(h http.Handler) http.Handler {
					h = responses.middleware(h)
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if test.bare {
							w = &withoutLimits{ResponseWriter: w}
						}
						h.ServeHTTP(w, r)
					})
				}
				var options []client.Option
				if test.paced {
					options = append(options, client.WithPacing())
				}
				calls := testenv.Count(50, 200)
				if test.limits.PerMinute == 1 { // hours of ticks of the server
					calls = testenv.Count(12, 200)
				}
				if test.limits.PerDay == 30 {
					// A day has a hundred thousand ticks of the server, so the test
					// starts at 11 p.m.
					calls = testenv.Count(40, 200)
					time.Sleep(23 * time.Hour)
				}
				store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(middleware),
					clienttest.WithPlan(animalstore.PlanEnterprise, test.limits),
					clienttest.WithClock(func() time.Time { return time.Now().Add(test.ahead) }), clienttest.WithClientOptions(options...))
				began := time.Now()
				err := inParallel(test.goroutines, calls, func(int) error { return only(store.Client.GetLimits(t.Context())) })
				if err != nil {
					t.Error(err)
				}
				took := time.Since(began)
				if got := responses.of(http.StatusOK); got != calls {
					t.Errorf("got %d successes, want %d", got, calls)
				}
				refusals, crossed := responses.of(http.StatusTooManyRequests), int(took/time.Minute)
				if refusals > crossed || refusals > 0 && test.paced {
					t.Errorf("got %d refusals in %v, want at most %d, and none if paced", refusals, took, crossed)
				}
				limits, err := store.Client.GetLimits(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if limits.Ban.Level > 0 || limits.Strikes.Count > 0 {
					t.Errorf("got %d strikes and ban level %d, want none", limits.Strikes.Count, limits.Ban.Level)
				}
				// The calls use the whole plan: they take the minimum time plus a
				// second per window.
				later := int64(calls - 1)
				least := max(time.Duration(later/limits.Minute.Limit)*time.Minute, time.Duration(later/limits.Day.Limit)*24*time.Hour)
				if most := least + least/30 + time.Minute; took > most {
					t.Errorf("took %v, want at most %v", took, most)
				}
			})
		})
	}
}

// withoutLimits removes the three rate limit headers.
type withoutLimits struct{ http.ResponseWriter }

func (w *withoutLimits) WriteHeader(status int) {
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		delete(w.Header(), name)
	}
	w.ResponseWriter.WriteHeader(status)
}

// TestStampede: many more goroutines than allowed requests start at once, before any
// response shows the limit. Only the first burst is refused, which costs nothing, and
// every call succeeds.
func TestStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses tally
		store := clienttest.New(t, clienttest.InMemory(), perMinute(10), clienttest.WithMiddleware(responses.middleware))
		err := inParallel(200, 200, func(int) error { return only(store.Client.GetLimits(t.Context())) })
		if err != nil {
			t.Error(err)
		}
		if got := responses.of(http.StatusTooManyRequests); got > 190 {
			t.Errorf("got %d refusals, want none after the first burst of 200", got)
		}
		limits, err := store.Client.GetLimits(t.Context())
		if err != nil || limits.Strikes.Count > 0 || limits.Ban.Level > 0 {
			t.Errorf("got %+v, %v, want neither strikes nor a ban", limits, err)
		}
	})
}
