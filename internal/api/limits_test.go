package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"animalstore"
)

// limitsBody is the body of GET /v1/limits.
type limitsBody struct {
	Plan        animalstore.Plan `json:"plan"`
	Minute, Day struct {
		Limit, Remaining int64
		Reset            time.Time
	}
	Strikes struct{ Count, Threshold int64 }
	Ban     banBody
}

type banBody struct {
	Active bool
	Until  string // null is empty
	Level  int64
}

// limitsBody asks a key how it stands. What it says agrees with the headers.
func (s *service) limitsBody(t testing.TB, key string) limitsBody {
	t.Helper()
	got := s.do(t, call{path: "/v1/limits", key: key})
	got.want(t, http.StatusOK, "")
	var body limitsBody
	d := json.NewDecoder(bytes.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("got %v: %v", got, err)
	}
	told := body.Minute
	if body.Day.Remaining < body.Minute.Remaining || body.Day.Remaining == 0 && body.Minute.Remaining == 0 && body.Day.Reset.After(body.Minute.Reset) {
		told = body.Day
	}
	got.wantLimits(t, told.Limit, told.Remaining, told.Reset)
	return body
}

func atoi(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLimitsOperation: every field, from the first request on.
func TestLimitsOperation(t *testing.T) {
	s := start(t)
	free, _ := s.planKey(t, animalstore.PlanFree)
	const want = `{"plan":"%s","minute":{"limit":%d,"remaining":%d,"reset":"%s"},"day":{"limit":%d,"remaining":%d,"reset":"2026-11-16T00:00:00.000Z"},` +
		`"strikes":{"count":%d,"threshold":%d},"ban":{"active":false,"until":null,"level":0}}` + "\n"
	s.clock.advance(250 * time.Millisecond)
	for used := range 3 {
		got := s.do(t, call{path: "/v1/limits", key: free})
		if want := fmt.Sprintf(want, "free", 60, 59-used, "2026-11-15T12:01:01.000Z", 1_000, 999-used, 0, 100); string(got.body) != want {
			t.Errorf("request %d: got %s\nwant %s", used+1, got.body, want)
		}
		if got := got.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control: got %q, want no-store", got)
		}
	}
	for range 57 {
		s.do(t, call{path: "/v1/pets", key: free}).want(t, http.StatusOK, "")
	}
	s.do(t, call{path: "/v1/limits", key: free}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	s.clock.advance(2 * time.Second)
	for range 7 {
		s.do(t, call{path: "/v1/limits", key: free}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	}
	s.clock.advance(time.Minute)
	got := s.do(t, call{path: "/v1/limits", key: free})
	if want := fmt.Sprintf(want, "free", 60, 59, "2026-11-15T12:02:03.000Z", 1_000, 939, 7, 100); string(got.body) != want {
		t.Errorf("after strikes: got %s\nwant %s", got.body, want)
	}
	s.clock.advance(10 * time.Minute)
	if got := s.limitsBody(t, free).Strikes.Count; got != 0 {
		t.Errorf("ten minutes on: got %d strikes, want none", got)
	}

	for plan, limits := range map[animalstore.Plan]animalstore.Limits{
		animalstore.PlanPro: {PerMinute: 300, PerDay: 10_000}, animalstore.PlanBusiness: {PerMinute: 1_000, PerDay: 100_000},
	} {
		key, _ := s.planKey(t, plan)
		body := s.limitsBody(t, key)
		if body.Plan != plan || body.Minute.Limit != limits.PerMinute || body.Day.Limit != limits.PerDay || body.Strikes.Threshold != limits.PerMinute {
			t.Errorf("%s: got %+v, want limits and threshold of %v", plan, body, limits)
		}
	}
	body := s.limitsBody(t, s.limitedKey(t, 5, 3))
	if body.Plan != animalstore.PlanEnterprise || body.Minute.Remaining != 4 || body.Day.Remaining != 2 {
		t.Errorf("enterprise: got %+v, want 4 of 5 and 2 of 3", body)
	}
}

// TestPlanChangeCounts: a key that is put on another plan has its limits within
// a second, and keeps what it used.
func TestPlanChangeCounts(t *testing.T) {
	s := start(t)
	secret, id := s.planKey(t, animalstore.PlanFree)
	s.exhaust(t, secret)
	patch := func(body string) {
		t.Helper()
		s.do(t, call{method: "PATCH", path: fmt.Sprint("/v1/keys/", id), key: s.admin, body: body}).want(t, http.StatusOK, "")
		s.clock.advance(time.Second)
	}
	patch(`{"plan":"pro"}`)
	if got := s.limitsBody(t, secret); got.Plan != "pro" || got.Minute.Remaining != 300-61 || got.Day.Remaining != 10_000-61 {
		t.Errorf("raised: got %+v, want what is left of pro", got)
	}
	patch(`{"plan":"enterprise","limits":{"perMinute":5,"perDay":1000}}`)
	got := s.do(t, call{path: "/v1/limits", key: secret})
	got.want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	got.wantLimits(t, 5, 0, time.Date(2026, 11, 15, 12, 1, 0, 0, time.UTC))
}
