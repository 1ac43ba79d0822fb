package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"animalstore"
)

// witness is an observer that records its calls.
type witness struct {
	mu     sync.Mutex
	open   int
	ended  []string
	limits []animalstore.Code
	failed []animalstore.Code
}

func (w *witness) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
}

func (w *witness) End(method, pattern string, status int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	w.ended = append(w.ended, fmt.Sprintf("%s %s %d", method, pattern, status))
	if took <= 0 || took > time.Minute {
		w.ended = append(w.ended, fmt.Sprint("took ", took))
	}
}

func (w *witness) Limited(code animalstore.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits = append(w.limits, code)
}

func (w *witness) Failed(code animalstore.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, code)
}

// TestObserver: every request is reported, with labels that no client can choose.
func TestObserver(t *testing.T) {
	saw := &witness{}
	s := start(t, func(with *setup) {
		with.observer = saw
		with.origins = []string{"https://shop.example"}
	}).inProcess()
	s.db.arm("Orders", func(context.Context) error { panic("out of order") })
	tight := s.limitedKey(t, 1, 100)
	preflight := http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"GET"}}
	for _, c := range []struct {
		call   call
		ended  string
		limit  string // "-": the limiter was not asked
		failed animalstore.Code
	}{
		{call{path: "/v1/pets?limit=3"}, "GET /v1/pets 200", "", ""},
		{call{method: "HEAD", path: "/v1/pets"}, "HEAD /v1/pets 200", "", ""},
		{call{method: "OPTIONS", path: "/v1/pets/7"}, "OPTIONS /v1/pets/{petId} 204", "", ""},
		{call{path: "/v1/pets/4711"}, "GET /v1/pets/{petId} 404", "", "pet_not_found"},
		{call{path: "/v1/pets?limit=no", bad: true}, "GET /v1/pets 400", "", "invalid_parameter"},
		{call{method: "DELETE", path: "/v1/pets", bad: true}, "DELETE /v1/pets 405", "", "method_not_allowed"},
		{call{method: "BREW", path: "/v1/pets", bad: true}, "other /v1/pets 405", "", "method_not_allowed"},
		{call{path: "/v1/pets/1/secret-path", bad: true}, "GET  404", "", "route_not_found"},
		{call{path: "/v1/keys"}, "GET /v1/keys 403", "", "insufficient_permission"},
		{call{path: "/v1/pets/1", key: noKey}, "GET /v1/pets/{petId} 401", "-", "missing_api_key"},
		{call{path: "/v1/secret", key: noKey, bad: true}, "GET  401", "-", "missing_api_key"},
		{call{path: "/v1/pets", key: tight}, "GET /v1/pets 200", "", ""},
		{call{path: "/v1/pets", key: tight}, "GET /v1/pets 429", "rate_limit_exceeded", "rate_limit_exceeded"},
		{call{method: "OPTIONS", path: "/v1/pets", key: noKey, header: preflight}, "OPTIONS /v1/pets 204", "-", ""},
		{call{path: "/v1/store/orders"}, "GET /v1/store/orders 500", "", "internal_error"}, // panics
		{call{path: "/livez", key: noKey}, "GET /livez 200", "-", ""},
		{call{method: "POST", path: "/readyz", key: noKey, bad: true}, "POST /readyz 405", "-", "method_not_allowed"},
		{call{path: "/secret-page", key: noKey, bad: true}, "GET  404", "-", "route_not_found"},
	} {
		saw.ended, saw.limits, saw.failed = nil, nil, nil
		s.do(t, c.call)
		name := c.call.method + " " + c.call.path
		if want := []string{c.ended}; !slices.Equal(saw.ended, want) {
			t.Errorf("%s: got the end %q, want %q", name, saw.ended, want)
		}
		var limits, failed []animalstore.Code
		if c.limit != "-" {
			limits = append(limits, animalstore.Code(c.limit))
		}
		if c.failed != "" {
			failed = append(failed, c.failed)
		}
		if !slices.Equal(saw.limits, limits) || !slices.Equal(saw.failed, failed) {
			t.Errorf("%s: got limits %q and failures %q, want %q and %q", name, saw.limits, saw.failed, limits, failed)
		}
		if saw.open != 0 {
			t.Errorf("%s: %d requests are in progress after it, want 0", name, saw.open)
		}
	}
}
