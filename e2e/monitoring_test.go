package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const rulesFile = "../packaging/prometheus/animalstore.rules.yml"

// TestSaturationMetrics: what a server does shows in its metrics.
func TestSaturationMetrics(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	s := start(t, withOps(), withArgs("--tls-cert", certFile, "--tls-key", keyFile, "--access-log"))
	c := newClient(t, s, s.ownerKey())
	c.http = trusts(roots)
	wantStatus(t, c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 201, "")
	for range 3 {
		wantStatus(t, c.get(t, "/v1/pets"), 200, "")
		wantStatus(t, c.get(t, "/v1/pets/1"), 200, "")
	}
	stranger := newClient(t, s, "")
	stranger.http = trusts(roots)
	wantStatus(t, stranger.get(t, "/v1/pets"), 401, "missing_api_key")
	wantStatus(t, c.do(t, "GET", "/v1/pets", "", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), 200, "")
	for series, least := range map[string]float64{
		"animalstore_sqlite_writes_total":                                    1,
		"animalstore_sqlite_commits_total":                                   1,
		"animalstore_sqlite_readers":                                         5,
		"animalstore_sqlite_file_bytes":                                      4096,
		"animalstore_sqlite_wal_bytes":                                       4096,
		"animalstore_page_cache_hits_total":                                  1,
		"animalstore_page_cache_misses_total":                                1,
		"animalstore_pet_cache_hits_total":                                   1,
		"animalstore_pet_cache_misses_total":                                 1,
		"animalstore_limit_keys":                                             1,
		"animalstore_limit_addresses":                                        1,
		`animalstore_certificate_expiry_timestamp_seconds{name="127.0.0.1"}`: float64(time.Now().Unix()),
	} {
		if got := s.metric(series); got < least {
			t.Errorf("%s: got %v, want at least %v", series, got, least)
		}
	}
	for _, series := range []string{"animalstore_sqlite_write_queue_length", "animalstore_sqlite_readers_busy", "animalstore_sqlite_reads_waiting"} {
		// The server's own work, such as saving counts, may be under way at any moment.
		eventually(t, time.Minute, series+" is 0 on an idle server", func() bool {
			return strings.Contains(s.metrics(), "\n"+series+" 0\n")
		})
	}
	eventually(t, time.Minute, "the trace is in the log", func() bool {
		return strings.Contains(s.stderr.String(), " trace_id=0af7651916cd43dd8448eb211c80319c")
	})
}

// existingMetrics are the names of our metrics, in the code that serves them.
func existingMetrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"../internal/metrics/*.go", "../internal/server/figures.go"} {
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

// TestDashboard: the dashboard is valid JSON, and asks for metrics that exist.
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
	detail := map[string]bool{ // for whoever looks for a cause
		"animalstore_event_messages": true, "animalstore_limit_fallbacks_total": true, "animalstore_limit_shared_decisions_total": true,
		"animalstore_redis_failures_total": true, "animalstore_redis_forgotten_keys_total": true,
	}
	for name := range known {
		if !strings.Contains(text, name) && !detail[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestMetricsAreExplained: the guide names every metric, some by the ends of their names.
func TestMetricsAreExplained(t *testing.T) {
	t.Parallel()
	guide := string(mustRead(t, "../docs/operations.md"))
	explained := map[string]bool{}
	for line := range strings.Lines(guide) {
		full := ""
		for _, m := range regexp.MustCompile("`(animalstore|…)(_[a-z_]+)`").FindAllStringSubmatch(line, -1) {
			if m[1] == "…" { // replaces the end of the name before, however much of it
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

// TestAlertRules: each alert has a section in the guide, and passes its tests.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rules, guide := string(mustRead(t, rulesFile)), string(mustRead(t, "../docs/operations.md"))
	wantKnown(t, existingMetrics(t), rulesFile, regexp.MustCompile(`(?m)^#.*`).ReplaceAllString(rules, ""))
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 5 {
		t.Fatalf("got %d alerts, want all", len(alerts))
	}
	for _, m := range alerts {
		if !strings.Contains(rules, "runbook: docs/operations.md#alert-"+strings.ToLower(m[1])+"\n") {
			t.Errorf("%s doesn't say where to find help", m[1])
		}
		if !strings.Contains(guide, "\n### Alert "+m[1]+"\n") {
			t.Errorf("the guide doesn't say what to do about %s", m[1])
		}
		if !strings.Contains(string(mustRead(t, "../packaging/prometheus/animalstore.rules.test.yml")), "alertname: "+m[1]+"\n") {
			t.Errorf("no test has %s fire", m[1])
		}
	}
	needs(t, "promtool")
	for _, args := range [][]string{{"check", rulesFile}, {"test", "../packaging/prometheus/animalstore.rules.test.yml"}} {
		cmd := exec.Command("promtool", args[0], "rules", args[1])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s rules: %v\n%s", args[0], err, out)
		}
	}
}
