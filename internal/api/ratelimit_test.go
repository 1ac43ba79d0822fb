package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// planKey makes a key on a plan.
func (s *service) planKey(t testing.TB, plan animalstore.Plan) (secret string, id int64) {
	t.Helper()
	return s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Plan, k.Limits, k.Permissions = plan, animalstore.Limits{}, everything
	})
}

// wantLimits fails the test unless the headers say this.
func (a response) wantLimits(t testing.TB, limit, remaining int64, reset time.Time) {
	t.Helper()
	if got, want := a.limits(), (limits{limit, remaining, reset.Unix()}); got != want {
		t.Fatalf("got limits %+v with %v, want %+v", got, a, want)
	}
}

// TestPlans uses up every minute of a plan until the day is used up as well.
// What the headers promise is what happens.
func TestPlans(t *testing.T) {
	sqliteOnly(t, "limits are counted in memory, and it takes thousands of requests")
	t.Parallel()
	for plan, want := range map[animalstore.Plan]animalstore.Limits{
		animalstore.PlanFree: {PerMinute: 60, PerDay: 1_000},
		animalstore.PlanPro:  {PerMinute: 300, PerDay: 10_000},
	} {
		t.Run(string(plan), func(t *testing.T) {
			s := start(t).inProcess()
			key, _ := s.planKey(t, plan)
			s.clock.set(time.Date(2026, 11, 15, 12, 0, 0, 250e6, time.UTC))
			midnight := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
			day := want.PerDay
			for day > 0 {
				began := s.clock.Now()
				reset := began.Add(time.Minute + time.Second - 1).Truncate(time.Second)
				for minute := want.PerMinute; minute > 0 && day > 0; {
					minute, day = minute-1, day-1
					got := s.do(t, call{path: "/v1/pets", key: key})
					got.want(t, http.StatusOK, "")
					if day < minute || day == 0 {
						got.wantLimits(t, want.PerDay, day, midnight)
					} else {
						got.wantLimits(t, want.PerMinute, minute, reset)
					}
				}
				end, limit, code := reset, want.PerMinute, animalstore.RateLimitExceeded
				if day == 0 {
					end, limit, code = midnight, want.PerDay, animalstore.DailyQuotaExceeded
				}
				for _, now := range []time.Time{began, end.Add(-time.Millisecond)} {
					s.clock.set(now)
					got := s.do(t, call{path: "/v1/pets", key: key})
					got.want(t, http.StatusTooManyRequests, code)
					got.wantLimits(t, limit, 0, end)
				}
				s.clock.set(end)
			}
			got := s.do(t, call{path: "/v1/pets", key: key})
			got.want(t, http.StatusOK, "")
			got.wantLimits(t, want.PerMinute, want.PerMinute-1, midnight.Add(time.Minute))
		})
	}
}

// TestLargePlans: the last request of a minute and of a day.
func TestLargePlans(t *testing.T) {
	sqliteOnly(t, "limits are counted in memory, and it takes thousands of requests")
	t.Parallel()
	s := start(t).inProcess()
	midnight := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		plan   animalstore.Plan
		limits animalstore.Limits
	}{
		{animalstore.PlanBusiness, animalstore.Limits{PerMinute: 1_000, PerDay: 100_000}},
		{animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 7, PerDay: 1 << 50}},
		{animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 1 << 50, PerDay: 1 << 50}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %v", test.plan, test.limits), func(t *testing.T) {
			now := s.clock.Now()
			reset := now.Add(time.Minute)
			use := func(before animalstore.LimitState, times int64) (last, next response) {
				secret, id := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
					if k.Plan, k.Limits = test.plan, test.limits; test.plan != animalstore.PlanEnterprise {
						k.Limits = animalstore.Limits{}
					}
				})
				s.remember(t, id, before)
				for range times {
					last = s.do(t, call{path: "/v1/pets", key: secret})
					last.want(t, http.StatusOK, "")
				}
				return last, s.do(t, call{path: "/v1/pets", key: secret})
			}
			times := min(test.limits.PerMinute, 1_000)
			used := animalstore.Window{Used: test.limits.PerMinute - times, End: reset.UnixMilli()}
			last, next := use(animalstore.LimitState{Minute: used}, times)
			last.wantLimits(t, test.limits.PerMinute, 0, reset)
			next.want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
			next.wantLimits(t, test.limits.PerMinute, 0, reset)

			used = animalstore.Window{Used: test.limits.PerDay - 1, End: midnight.UnixMilli()}
			last, next = use(animalstore.LimitState{Day: used}, 1)
			last.wantLimits(t, test.limits.PerDay, 0, midnight)
			next.want(t, http.StatusTooManyRequests, animalstore.DailyQuotaExceeded)
			next.wantLimits(t, test.limits.PerDay, 0, midnight)
		})
	}
}

// TestCharged: whatever becomes of a request with a valid key, unless it is
// refused for its rate, it costs one.
func TestCharged(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex", Status: animalstore.PetSold}, animalstore.NewPet{Name: "Mia"})
	text := http.Header{"Content-Type": {"text/plain"}}
	tests := []struct {
		name  string
		call  call
		fault fault // of the pet's look-up
		want  int
	}{
		{"a list", call{path: "/v1/pets"}, nil, 200},
		{"its head", call{method: "HEAD", path: "/v1/pets"}, nil, 200},
		{"a new pet", call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}, nil, 201},
		{"a removal", call{method: "DELETE", path: "/v1/pets/2"}, nil, 204},
		{"OPTIONS", call{method: "OPTIONS", path: "/v1/pets"}, nil, 204},
		{"nothing new", call{path: "/v1/pets", header: http.Header{"If-None-Match": {"*"}}}, nil, 304},
		{"a wrong parameter", call{path: "/v1/pets?limit=0"}, nil, 400},
		{"a broken body", call{method: "POST", path: "/v1/pets", body: "{"}, nil, 400},
		{"no permission", call{path: "/v1/pets"}, nil, 403},
		{"no such pet", call{path: "/v1/pets/99"}, nil, 404},
		{"no such path", call{path: "/v1/nothing"}, nil, 404},
		{"no such method", call{method: "BREW", path: "/v1/pets"}, nil, 405},
		{"a forbidden move", call{method: "PATCH", path: "/v1/pets/1", body: `{"status":"available"}`}, nil, 409},
		{"another state", call{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Max"}`, header: http.Header{"If-Match": {`"x"`}}}, nil, 412},
		{"a large body", call{method: "POST", path: "/v1/pets", body: bodyOf(api.MaxBody + 1)}, nil, 413},
		{"another media type", call{method: "POST", path: "/v1/pets", body: "x", header: text}, nil, 415},
		{"an error inside", call{path: "/v1/pets/1"}, failWith(errors.New("boom")), 500},
		{"a panic", call{path: "/v1/pets/1"}, func(context.Context) error { panic("boom") }, 500},
		{"storage gone", call{path: "/v1/pets/1"}, failWith(db.ErrUnavailable), 503},
		{"an operation that was removed", call{path: "/v1/pets/1"}, nil, 410},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			permissions := everything
			switch test.want {
			case 403:
				permissions = animalstore.Admin
			case 410:
				s.clock.set(removal)
			}
			secret, id := s.with(t, permissions, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 100, PerDay: 1_000} })
			s.db.arm("Pet", test.fault)
			defer s.db.arm("Pet", nil)
			test.call.key, test.call.bad = secret, true
			for i := range int64(3) {
				if got := s.do(t, test.call); i == 0 && got.status != test.want {
					t.Errorf("got %v, want %d", got, test.want)
				} else if left := got.limits().remaining; left != 99-i {
					t.Errorf("request %d: got %d remaining, want %d", i+1, left, 99-i)
				}
			}
			if got := s.used(t, id); got.Minute.Used != 3 || got.Day.Used != 3 {
				t.Errorf("got %d charged to the minute and %d to the day, want 3 each", got.Minute.Used, got.Day.Used)
			}
		})
	}
}

// used returns the counters of a key by way of the database.
func (s *service) used(t testing.TB, keyID int64) animalstore.LimitState {
	t.Helper()
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := s.db.LimitState(t.Context(), keyID)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestRefusedIsNotCharged: a 429 costs nothing but, in the end, a ban.
func TestRefusedIsNotCharged(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 2, PerDay: 1_000} })
	for i := range 20 {
		if got := s.do(t, call{path: "/v1/pets", key: secret}); (got.status == 429) != (i >= 2) {
			t.Errorf("request %d: got %v, want 429 from the third on", i+1, got)
		}
	}
	if got := s.used(t, id); got.Minute.Used != 2 || got.Day.Used != 2 {
		t.Errorf("got %d charged to the minute and %d to the day, want 2 each", got.Minute.Used, got.Day.Used)
	}
}

// TestLimitsUnknown: if a key's counters can't be read, nothing is charged and the
// response has the limits of the address.
func TestLimitsUnknown(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, nil)
	s.db.arm("LimitState", failWith(db.ErrUnavailable))
	for range 3 {
		got := s.do(t, call{path: "/v1/pets", key: secret})
		got.want(t, http.StatusServiceUnavailable, animalstore.Unavailable)
		got.wantLimits(t, 3_000, 3_000, s.clock.Now().Add(time.Minute))
	}
	s.db.arm("LimitState", nil)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
	if got := s.used(t, id); got.Day.Used != 1 {
		t.Errorf("got %d charged, want 1", got.Day.Used)
	}
}

// TestLimitsOnTheWire reads responses of every status as they are sent: raw looks
// at the spelling of the names.
func TestLimitsOnTheWire(t *testing.T) {
	s := start(t, func(with *setup) { with.origins = []string{shop} })
	s.add(t, animalstore.NewPet{Name: "Rex", Status: animalstore.PetSold}, animalstore.NewPet{Name: "Mia"})
	exhausted := s.limitedKey(t, 1, 1)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	tests := []struct {
		request, header, key, body string
		fault                      fault
		want                       int
	}{
		{"GET /v1/pets", "", s.owner, "", nil, 200},
		{"HEAD /v1/pets", "", s.owner, "", nil, 200},
		{"POST /v1/pets", "Idempotency-Key: one\r\n", s.owner, `{"name":"Max","categoryId":7}`, nil, 201},
		{"DELETE /v1/pets/2", "", s.owner, "", nil, 204},
		{"OPTIONS /v1/pets", "", s.owner, "", nil, 204},
		{"OPTIONS /v1/pets", "Origin: " + shop + "\r\nAccess-Control-Request-Method: GET\r\n", "", "", nil, 204},
		{"GET /v1/pets", "If-None-Match: *\r\n", s.owner, "", nil, 304},
		{"GET /v1/pets?limit=0", "", s.owner, "", nil, 400},
		{"GET /v1/pets", "", "", "", nil, 401},
		{"GET /v1/nothing", "", "", "", nil, 401},
		{"GET /v1/keys", "", s.owner, "", nil, 403},
		{"GET /v1/nothing", "", s.owner, "", nil, 404},
		{"GET /v1", "", s.owner, "", nil, 404},
		{"BREW /v1/pets", "", s.owner, "", nil, 405},
		{"PATCH /v1/pets/1", "", s.owner, `{"status":"pending"}`, nil, 409},
		{"PATCH /v1/pets/1", "If-Match: \"x\"\r\n", s.owner, `{"status":"pending"}`, nil, 412},
		{"POST /v1/pets", "", s.owner, bodyOf(api.MaxBody + 1), nil, 413},
		{"POST /v1/pets", "Content-Type: text/plain\r\n", s.owner, "x", nil, 415},
		{"POST /v1/pets", "Idempotency-Key: one\r\n", s.owner, `{"name":"Moritz","categoryId":7}`, nil, 422},
		{"GET /v1/pets", "", exhausted, "", nil, 429},
		{"GET /v1/pets/1", "", s.owner, "", failWith(errors.New("boom")), 500},
		{"GET /v1/pets/1", "", s.owner, "", func(context.Context) error { panic("boom") }, 500},
		{"GET /v1/pets/1", "", s.owner, "", failWith(db.ErrUnavailable), 503},
		{"GET /v1/pets/1", "", s.owner, "", nil, 410},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.request, " ", test.want), func(t *testing.T) {
			if test.want == 410 {
				s.clock.set(removal)
			}
			s.db.arm("Pet", test.fault)
			defer s.db.arm("Pet", nil)
			text := test.request + " HTTP/1.1\r\nHost: x\r\n" + test.header
			if test.key != "" {
				text += "Authorization: Bearer " + test.key + "\r\n"
			}
			text += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(test.body))
			if got := s.raw(t, text+test.body); got.status != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
	t.Run("a panic while the key is looked up", func(t *testing.T) {
		s.db.arm("KeyByHash", func(context.Context) error { panic("boom") })
		defer s.db.arm("KeyByHash", nil)
		got := s.raw(t, "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+keys.Mint(s.env)+"\r\n\r\n")
		got.want(t, http.StatusInternalServerError, animalstore.InternalError)
	})
	if err := wireSpelling("/v1/pets", http.Header{"X-Ratelimit-Limit": {"1"}, "X-RateLimit-Remaining": {"1"}, "X-RateLimit-Reset": {"1"}}); err == nil || !strings.Contains(err.Error(), "X-RateLimit-Limit") {
		t.Errorf("another spelling: got %v, want a complaint", err)
	}
}
