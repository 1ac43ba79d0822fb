package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// withOps has a server serve metrics and profiles on a free port.
func withOps() option { return withArgs("--ops-listen", "127.0.0.1:0") }

// onUsualOps leaves the address of metrics and profiles as it is by default.
func onUsualOps() option { return func(s *settings) { s.usualOps = true } }

var opsAddress = regexp.MustCompile(`\bops"?[=:]"?http://([^/"\s]+)/metrics`)

// ops fetches a page from the operator's address.
func (s *server) ops(path string) (status int, body string) {
	s.t.Helper()
	m := opsAddress.FindStringSubmatch(s.stderr.String())
	if m == nil {
		s.t.Fatalf("the log doesn't say where the metrics are:\n%s", s.stderr)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Get("http://" + m[1] + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// metrics returns the server's metrics page.
func (s *server) metrics() string {
	s.t.Helper()
	status, body := s.ops("/metrics")
	if status != 200 {
		s.t.Fatalf("/metrics: got %d %s, want 200", status, body)
	}
	return body
}

// metric is the value of one series, named with its labels as it is written.
func (s *server) metric(series string) float64 {
	s.t.Helper()
	for line := range strings.Lines(s.metrics()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, withOps())
	c := newClient(t, s, s.ownerKey())
	for range 3 {
		wantStatus(t, c.get(t, "/v1/pets"), 200, "")
	}
	wantStatus(t, c.get(t, "/v1/pets/4711"), 404, "pet_not_found")
	wantStatus(t, newClient(t, s, "").get(t, "/v1/pets/4711"), 401, "missing_api_key")
	for series, want := range map[string]float64{
		`animalstore_http_requests_total{method="GET",route="/v1/pets",status="200"}`:         3,
		`animalstore_http_requests_total{method="GET",route="/v1/pets/{petId}",status="404"}`: 1,
		`animalstore_http_requests_total{method="GET",route="/v1/pets/{petId}",status="401"}`: 1,
		`animalstore_limit_decisions_total{outcome="admitted"}`:                               4,
		`animalstore_http_errors_total{code="pet_not_found"}`:                                 1,
		`animalstore_http_errors_total{code="unavailable"}`:                                   0,
	} {
		// A request is counted after its response is on its way.
		eventually(t, time.Minute, fmt.Sprintf("%s is %v", series, want), func() bool { return s.metric(series) == want })
	}
	if strings.Contains(s.metrics(), "4711") {
		t.Error("a path is in the metrics as a client sent it")
	}
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/cmdline": "serve"} {
		if status, body := s.ops(path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.100q, want 200 with %q", path, status, body, want)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		wantStatus(t, c.get(t, path), 404, "route_not_found") // not for clients
	}
}

func TestOpsAddressTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := launch(t, withArgs("--ops-listen", taken.Addr().String()))
	if code := s.wait(); code != 1 || !strings.Contains(s.stderr.String(), "Choose another address with --ops-listen") {
		t.Errorf("an address that is taken: exit code %d, want 1 and the way out.\n%s", code, s.output())
	}
	if strings.Contains(s.stdout.String(), "ast_live_") {
		t.Error("a start that failed used up the owner key")
	}

	// By default it is not worth failing for, and a machine may have two servers.
	usual, err := net.Listen("tcp", "127.0.0.1:8081")
	if err != nil {
		t.Logf("another program uses the default address and may release it at any time: %v", err)
		return
	}
	defer usual.Close()
	s = start(t, onUsualOps())
	if !strings.Contains(s.stderr.String(), "no metrics and profiles") {
		t.Errorf("nothing says that there are no metrics.\n%s", s.output())
	}
	wantStatus(t, newClient(t, s, s.ownerKey()).get(t, "/v1/pets"), 200, "")
}
