package client_test

import (
	"fmt"
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
	ten := animalstore.Limits{PerMinute: 10, PerDay: 1 << 40}
	bare := func(h http.Handler) http.Handler { // as behind a proxy that drops unknown headers
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(&withoutLimits{ResponseWriter: w}, r)
		})
	}
	tests := map[string]struct {
		plan       animalstore.Plan
		limits     animalstore.Limits
		goroutines int
		options    []client.Option
		before     func(http.Handler) http.Handler
		refusals   bool // whether refusals are allowed
	}{
		"10 a minute":                   {animalstore.PlanEnterprise, ten, 1, nil, nil, true},
		"10 a minute, 8 goroutines":     {animalstore.PlanEnterprise, ten, 8, nil, nil, true},
		"free":                          {animalstore.PlanFree, animalstore.Limits{}, 1, nil, nil, true},
		"free, 40 goroutines":           {animalstore.PlanFree, animalstore.Limits{}, 40, nil, nil, true},
		"30 a day":                      {animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 10, PerDay: 30}, 1, nil, nil, true},
		"no headers":                    {animalstore.PlanEnterprise, ten, 1, nil, bare, true},
		"1 a minute":                    {animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 1, PerDay: 1 << 40}, 1, nil, nil, true},
		"paced, 10 a minute":            {animalstore.PlanEnterprise, ten, 1, []client.Option{client.WithPacing()}, nil, false},
		"paced, 8 goroutines":           {animalstore.PlanEnterprise, ten, 8, []client.Option{client.WithPacing()}, nil, false},
		"paced, 200 goroutines":         {animalstore.PlanEnterprise, ten, 200, []client.Option{client.WithPacing()}, nil, false},
		"paced, free, 40 goroutines":    {animalstore.PlanFree, animalstore.Limits{}, 40, []client.Option{client.WithPacing()}, nil, false},
		"paced, 30 a day, 8 goroutines": {animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 10, PerDay: 30}, 8, []client.Option{client.WithPacing()}, nil, false},
		"paced, 1 a minute":             {animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 1, PerDay: 1 << 40}, 3, []client.Option{client.WithPacing()}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var responses tally
				before := func(h http.Handler) http.Handler { return responses.middleware(h) }
				if test.before != nil {
					before = func(h http.Handler) http.Handler { return test.before(responses.middleware(h)) }
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
				store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(before),
					clienttest.WithPlan(test.plan, test.limits), clienttest.WithClientOptions(test.options...))
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
				if refusals > crossed || refusals > 0 && !test.refusals {
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

// TestLostResponsesCount: a request whose response was lost may have been charged. The
// client counts it, so that it doesn't exceed a limit it could know about.
func TestLostResponsesCount(t *testing.T) {
	for _, what := range []string{"done, cut before the response", "done, proxy is broken", "done, half a body"} {
		for _, kept := range []bool{false, true} { // with kept connections, net/http resends by itself
			t.Run(fmt.Sprintf("%s, on a kept connection %t", what, kept), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var responses tally
					troubles := 0
					store := clienttest.New(t, clienttest.InMemory(), perMinute(3), clienttest.WithMiddleware(func(service http.Handler) http.Handler {
						service = responses.middleware(service)
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if troubles > 0 {
								troubles--
								faults[what](w, r, service)
								return
							}
							service.ServeHTTP(w, r)
						})
					}))
					began := time.Now()
					for i := range 2 {
						if !kept {
							store.Client.CloseIdleConnections()
						}
						if _, err := store.Client.GetLimits(t.Context()); err != nil {
							t.Errorf("call %d: got %v, want success in the end", i, err)
						}
						troubles = 2 // one response, and the other two requests of the minute lost
					}
					if got := responses.of(http.StatusTooManyRequests); got > 0 {
						t.Errorf("got %d refusals of %d, want none", got, responses.total())
					}
					if got := time.Since(began); got < time.Minute || got > 70*time.Second {
						t.Errorf("took %v for four requests of three a minute, want a minute", got)
					}
				})
			})
		}
	}
}
