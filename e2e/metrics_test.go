package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// withOps makes a server serve metrics and profiles on a free port.
func withOps() option { return withArgs("--ops-listen", "127.0.0.1:0") }

var opsAddress = regexp.MustCompile(`\bops"?[=:]"?http://([^/"\s]+)/metrics`)

// ops fetches a page from the operator's address.
func (s *server) ops(path string) (status int, body string) {
	s.t.Helper()
	m := opsAddress.FindStringSubmatch(s.stderr.String())
	if m == nil {
		s.t.Fatalf("the log doesn't say where the metrics are:\n%s", s.stderr)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Deadline}
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

// metric returns the value of one series, named with its labels as written.
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

// TestMetrics_Slow: the activity of a server and its database is visible in its metrics.
func TestMetrics_Slow(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, _ int) {
		s := start(t, withOps(), onDatabase(database))
		c := newClient(t, s, adminKey(t, database))
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
		for range 3 {
			wantStatus(t, c.get(t, "/v1/pets"), 200, "")
		}
		wantStatus(t, newClient(t, s, "").get(t, "/v1/pets"), 401, "missing_api_key")
		const reads = `animalstore_http_requests_total{method="GET",route="/v1/pets",status="200"}`
		// A request is counted after its response has been sent.
		testenv.Eventually(t, "three reads are counted", func() bool { return s.metric(reads) == 3 })
		positive := []string{"animalstore_sqlite_writes_total", "animalstore_sqlite_commits_total", "animalstore_sqlite_readers",
			"animalstore_sqlite_file_bytes", "animalstore_page_cache_misses_total", "animalstore_limit_keys", "animalstore_limit_addresses"}
		if isURL(database) {
			positive = []string{"animalstore_postgres_pool_max", "animalstore_postgres_pool_waits_total", "animalstore_postgres_database_bytes"}
		}
		for _, series := range positive {
			testenv.Eventually(t, series+" is positive", func() bool {
				// During a write, a page is neither a hit nor a miss of the cache.
				wantStatus(t, c.get(t, "/v1/pets"), 200, "")
				return s.metric(series) > 0
			})
		}
		for _, path := range []string{"/metrics", "/debug/pprof/"} {
			wantStatus(t, c.get(t, path), 404, "route_not_found") // not for clients
		}
	})
}

const rulesFile = "../packaging/prometheus/animalstore.rules.yml"

// existingMetrics are the names of our metrics, from the code that serves them.
func existingMetrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"../internal/metrics/*.go", "../internal/server/metrics.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(`"(animalstore_[a-z_]+)"`).FindAllStringSubmatch(string(mustRead(t, file)), -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// wantKnown checks the metrics in a query.
func wantKnown(t *testing.T, known map[string]bool, where, query string) {
	t.Helper()
	for _, name := range regexp.MustCompile(`animalstore_[a-z_]+`).FindAllString(query, -1) {
		base := name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if !known[name] && !known[base] {
			t.Errorf("%s: %s doesn't exist", where, name)
		}
	}
}

// TestDashboard: the dashboard is valid JSON and queries metrics that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(mustRead(t, "../packaging/grafana/animalstore.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	known, text := existingMetrics(t), ""
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			wantKnown(t, known, panel.Title, target.Expr)
			text += target.Expr + "\n"
		}
	}
	detail := map[string]bool{ // for finding a cause
		"animalstore_event_messages": true, "animalstore_limit_fallbacks_total": true, "animalstore_limit_shared_decisions_total": true,
		"animalstore_inventory_counts_total": true, "animalstore_redis_failures_total": true, "animalstore_redis_forgotten_keys_total": true,
		"animalstore_remote_backup_failing": true, "animalstore_failures_lost_total": true, "animalstore_backup_interval_seconds": true,
	}
	for name := range known {
		if !strings.Contains(text, name) && !detail[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestMetricsAreExplained: the guide names every metric, some by the end of their
// names.
func TestMetricsAreExplained(t *testing.T) {
	t.Parallel()
	guide := string(mustRead(t, "../docs/operations.md"))
	explained := map[string]bool{}
	for line := range strings.Lines(guide) {
		full := ""
		for _, m := range regexp.MustCompile("`(animalstore|…)(_[a-z_]+)`").FindAllStringSubmatch(line, -1) {
			if m[1] == "…" { // replaces the end of the previous name
				for i := range full {
					explained[full[:i]+m[2]] = true
				}
				continue
			}
			full = m[1] + m[2]
			explained[full] = true
		}
	}
	for name := range existingMetrics(t) {
		if !explained[name] {
			t.Errorf("the guide doesn't explain %s", name)
		}
	}
}

// TestAlertRules_Slow: each alert passes its tests. TestRunbooks checks that the guide explains it.
func TestAlertRules_Slow(t *testing.T) {
	t.Parallel()
	rules := string(mustRead(t, rulesFile))
	wantKnown(t, existingMetrics(t), rulesFile, regexp.MustCompile(`(?m)^#.*`).ReplaceAllString(rules, ""))
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 5 {
		t.Fatalf("got %d alerts, want all", len(alerts))
	}
	for _, m := range alerts {
		if !strings.Contains(string(mustRead(t, "../packaging/prometheus/animalstore.rules.test.yml")), "alertname: "+m[1]+"\n") {
			t.Errorf("no test makes %s fire", m[1])
		}
	}
	testenv.Need(t, "promtool")
	for _, args := range [][]string{{"check", rulesFile}, {"test", "../packaging/prometheus/animalstore.rules.test.yml"}} {
		cmd := exec.Command("promtool", args[0], "rules", args[1])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s rules: %v\n%s", args[0], err, out)
		}
	}
}
