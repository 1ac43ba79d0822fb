package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// TestCharged: regardless of the outcome of a request with a valid key, unless it is
// refused for its rate, it costs one.
func TestCharged(t *testing.T) {
	s := start(t).inProcess() // which checks how the headers are spelled
	s.add(t, animalstore.NewPet{Name: "Rex", Status: animalstore.PetSold}, animalstore.NewPet{Name: "Mia"})
	tests := []struct {
		name  string
		call  call
		fault fault // of the pet's look-up
		want  int
	}{
		{"a list", call{path: "/v1/pets"}, nil, 200},
		{"a new pet", call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}, nil, 201},
		{"OPTIONS", call{method: "OPTIONS", path: "/v1/pets"}, nil, 204},
		{"nothing new", call{path: "/v1/pets", header: http.Header{"If-None-Match": {"*"}}}, nil, 304},
		{"no permission", call{path: "/v1/pets"}, nil, 403},
		{"no such pet", call{path: "/v1/pets/99"}, nil, 404},
		{"no such method", call{method: "BREW", path: "/v1/pets"}, nil, 405},
		{"a forbidden move", call{method: "PATCH", path: "/v1/pets/1", body: `{"status":"available"}`}, nil, 409},
		{"a large body", call{method: "POST", path: "/v1/pets", body: bodyOf(api.MaxBody + 1)}, nil, 413},
		{"an error inside", call{path: "/v1/pets/1"}, failWith(errors.New("boom")), 500},
		{"an operation that was removed", call{path: "/v1/pets/1"}, nil, 410},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			permissions := everything
			switch test.want {
			case 403:
				permissions = animalstore.Admin
			case 410:
				s.clock.Set(removal)
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
func (s *service) used(t testing.TB, keyID int64) db.LimitState {
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
	const want = `{"plan":"%s","permissions":["read","write","admin"],"minute":{"limit":%d,"remaining":%d,"reset":"%s"},"day":{"limit":%d,"remaining":%d,"reset":"2026-11-16T00:00:00.000Z"},` +
		`"strikes":{"count":%d,"threshold":%d},"ban":{"active":false,"until":null,"level":0}}` + "\n"
	wantBody := func(key string, values ...any) response {
		t.Helper()
		got := s.do(t, call{path: "/v1/limits", key: key})
		if want := fmt.Sprintf(want, values...); string(got.body) != want {
			t.Errorf("got  %s\nwant %s", got.body, want)
		}
		return got
	}
	s.clock.Advance(250 * time.Millisecond)
	const reset = "2026-11-15T12:01:01.000Z"
	free, _ := s.planKey(t, animalstore.PlanFree)
	for used := range 3 {
		got := wantBody(free, "free", 60, 59-used, reset, 1_000, 999-used, 0, 100)
		if got := got.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control: got %q, want no-store", got)
		}
	}
	narrow := s.key(t, animalstore.OrdersWrite|animalstore.PetsRead)
	if got := s.do(t, call{path: "/v1/limits", key: narrow}); !strings.Contains(string(got.body), `"permissions":["pets:read","orders:write"]`) {
		t.Errorf("got %s, want exactly the permissions that the key was given", got.body)
	}
	pro, _ := s.planKey(t, animalstore.PlanPro)
	wantBody(pro, "pro", 300, 299, reset, 10_000, 9_999, 0, 300)
	got := wantBody(s.limitedKey(t, 5, 3), "enterprise", 5, 4, reset, 3, 2, 0, 100)
	got.wantLimits(t, 3, 2, time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)) // the day has fewer left

	for range 57 {
		s.do(t, call{path: "/v1/pets", key: free}).want(t, http.StatusOK, "")
	}
	refused := s.do(t, call{path: "/v1/limits", key: free})
	refused.want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	refused.wantLimits(t, 60, 0, time.Date(2026, 11, 15, 12, 1, 1, 0, time.UTC))
	if got := refused.header.Get("Retry-After"); got != "61" {
		t.Errorf("Retry-After: got %s, want 61", got)
	}
	s.clock.Advance(2 * time.Second)
	for range 7 {
		s.do(t, call{path: "/v1/limits", key: free}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	}
	s.clock.Advance(time.Minute)
	wantBody(free, "free", 60, 59, "2026-11-15T12:02:03.000Z", 1_000, 939, 7, 100)
}

// limitHeaders are spelled here as the interface spells them.
var limitHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// wireSpelling refuses a response under /v1 whose limits are not spelled as
// documented. Clients that read headers as they stand depend on it.
func wireSpelling(path string, h http.Header) error {
	if path != "/v1" && !strings.HasPrefix(path, "/v1/") {
		return nil
	}
	var wrong []error
	for _, name := range limitHeaders {
		if len(h[name]) != 1 {
			wrong = append(wrong, fmt.Errorf("on the wire: got %d lines spelled %s, want one, in %v", len(h[name]), name, h))
		}
	}
	return errors.Join(wrong...)
}

// longestReset bounds Reset: a day, a ban of a day, and what tests set the clock
// back by.
const longestReset = 49 * time.Hour

// limits are the three headers of a response.
type limits struct{ limit, remaining, reset int64 }

func (a response) limits() limits {
	l, _ := readLimits(a.header) // every response is checked on its way
	return l
}

func readLimits(h http.Header) (l limits, err error) {
	for i, dst := range []*int64{&l.limit, &l.remaining, &l.reset} {
		text := h.Get(limitHeaders[i])
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil || strconv.FormatInt(n, 10) != text || n < 0 {
			err = errors.Join(err, fmt.Errorf("%s: got %q, want an integer", limitHeaders[i], text))
		}
		*dst = n
	}
	return l, err
}

// checkLimits checks the limit headers of a response, regardless of its status.
func (e *exchange) checkLimits() error {
	l, err := readLimits(e.answered)
	if err != nil {
		return err
	}
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if l.limit < 1 || l.remaining > l.limit {
		complain("X-RateLimit-Remaining: got %d of %d, want 0 to the limit", l.remaining, l.limit)
	}
	left := time.Unix(l.reset, 0).Sub(e.now)
	if left <= 0 || left > longestReset {
		complain("X-RateLimit-Reset: got %d, which is in %v, want a time to come", l.reset, left)
	}
	if e.status != http.StatusTooManyRequests || strings.Contains(string(e.body), `"too_many_streams"`) {
		return errors.Join(wrong...)
	}
	if l.remaining != 0 {
		complain("X-RateLimit-Remaining: got %d with 429, want 0", l.remaining)
	}
	want := strconv.FormatInt(max(1, int64((left+time.Second-1)/time.Second)), 10)
	if got := e.answered.Get("Retry-After"); got != want {
		complain("Retry-After: got %q, want %s, the whole seconds until Reset", got, want)
	}
	return errors.Join(wrong...)
}

// hammer sends requests with a key on plan free until they are refused, and then goes on
// until the key is banned. It returns that response.
func (s *service) hammer(t testing.TB, key string) (got response) {
	t.Helper()
	for sent := 0; got.code() != animalstore.KeyBanned && sent < 500; sent++ {
		if got.code() == animalstore.RateLimitExceeded {
			s.clock.Advance(15 * time.Millisecond) // strikes begin a second after the first 429
		}
		got = s.do(t, call{path: "/v1/pets", key: key})
	}
	return got
}

// TestBan: a key that doesn't stop after 429 is banned, which its responses, the log and the
// key show until an admin lifts the ban. The key's tag changes with it.
func TestBan(t *testing.T) {
	s := start(t).inProcess()
	secret, id := s.planKey(t, animalstore.PlanFree)
	show := func() (ban, tag string) {
		t.Helper()
		got := s.asAdmin(t, "GET", keyPath(id), "")
		var key struct{ Ban json.RawMessage }
		if err := json.Unmarshal(got.body, &key); err != nil {
			t.Fatal(err)
		}
		return string(key.Ban), got.header.Get("ETag")
	}
	_, before := show()
	got := s.hammer(t, secret)
	end := s.clock.Now().Add(5*time.Minute + time.Second - 1).Truncate(time.Second)
	got.want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	got.wantLimits(t, 60, 0, end)
	if lines := s.log.lines("level=WARN", "banned", fmt.Sprint("key_id=", id)); len(lines) != 1 {
		t.Errorf("got %q in the log, want one line", lines)
	}
	want := fmt.Sprintf(`{"until":%q,"level":1}`, animalstore.At(end))
	if ban, tag := show(); ban != want || tag == before {
		t.Errorf("got ban %s and tag %s, want %s and another tag than before", ban, tag, want)
	}
	for _, lifted := range []string{"true", "false"} {
		got := s.asAdmin(t, "POST", keyPath(id, "/unban"), "")
		if got.status != http.StatusOK || got.header.Get("Ban-Lifted") != lifted {
			t.Errorf("got %v with Ban-Lifted %q, want %s", got, got.header.Get("Ban-Lifted"), lifted)
		}
		if ban, tag := show(); ban != "null" || tag != before || tag != got.header.Get("ETag") {
			t.Errorf("got ban %s and tag %s, want none and the tag from before, %s", ban, tag, before)
		}
	}
	s.clock.Advance(time.Minute)
	limits := s.do(t, call{path: "/v1/limits", key: secret})
	if want := `"ban":{"active":false,"until":null,"level":1}`; !strings.Contains(string(limits.body), want) {
		t.Errorf("got %v, want %s in it", limits, want)
	}
}
