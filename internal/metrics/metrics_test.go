package metrics

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// scrape returns what /metrics serves.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("/metrics responds %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := New("v1.2.3")
	m.Begin()
	for range 3 {
		m.Begin()
		m.Limited("")
		m.End("GET", "/v1/pets", 200, 3*time.Millisecond)
	}
	m.Begin()
	m.Limited(animalstore.KeyBanned)
	m.Failed(animalstore.KeyBanned)
	m.End("POST", "/v1/pets", 429, time.Millisecond)
	m.Begin()
	m.End("GET", "", 404, time.Millisecond)
	text := scrape(t, m)
	for _, want := range []string{
		`animalstore_http_requests_total{method="GET",route="/v1/pets",status="200"} 3`,
		`animalstore_http_requests_total{method="POST",route="/v1/pets",status="429"} 1`,
		`animalstore_http_requests_total{method="GET",route="unmatched",status="404"} 1`,
		`animalstore_http_request_duration_seconds_bucket{method="GET",route="/v1/pets",le="0.0025"} 0`,
		`animalstore_http_request_duration_seconds_bucket{method="GET",route="/v1/pets",le="0.005"} 3`,
		`animalstore_http_requests_in_flight 1`,
		`animalstore_limit_decisions_total{outcome="admitted"} 3`,
		`animalstore_limit_decisions_total{outcome="rate_limit_exceeded"} 0`,
		`animalstore_limit_decisions_total{outcome="daily_quota_exceeded"} 0`,
		`animalstore_limit_decisions_total{outcome="key_banned"} 1`,
		`animalstore_http_errors_total{code="key_banned"} 1`,
		`animalstore_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"} 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no line begins with %s", want)
		}
	}
	for _, code := range animalstore.Codes {
		if !strings.Contains(text, `animalstore_http_errors_total{code="`+string(code)+`"}`) {
			t.Errorf("errors with the code %s are not counted", code)
		}
	}
}
