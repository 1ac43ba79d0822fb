package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// withOps makes a server serve metrics and profiles on a free port.
func withOps() option { return withArgs("--ops-listen", "127.0.0.1:0") }

// onUsualOps leaves the address of metrics and profiles at its default.
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
		// A request is counted after its response has been sent.
		testenv.Eventually(t, fmt.Sprintf("%s is %v", series, want), func() bool { return s.metric(series) == want })
	}
	if strings.Contains(s.metrics(), "4711") {
		t.Error("the metrics contain a path sent by a client")
	}
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile"} {
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

	// By default this doesn't fail the start, because a machine may run two servers.
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

const rulesFile = "../packaging/prometheus/animalstore.rules.yml"

// TestSaturationMetrics: a server's activity is visible in its metrics.
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
		"animalstore_limit_keys":                                             1,
		"animalstore_limit_addresses":                                        1,
		`animalstore_certificate_expiry_timestamp_seconds{name="127.0.0.1"}`: float64(time.Now().Unix()),
	} {
		if got := s.metric(series); got < least {
			t.Errorf("%s: got %v, want at least %v", series, got, least)
		}
	}
	for _, series := range []string{"animalstore_sqlite_write_queue_length", "animalstore_sqlite_readers_busy", "animalstore_sqlite_reads_waiting"} {
		// The server's own work, such as saving counts, may be in progress at any
		// moment.
		testenv.Eventually(t, series+" is 0 on an idle server", func() bool {
			return strings.Contains(s.metrics(), "\n"+series+" 0\n")
		})
	}
	testenv.Eventually(t, "the trace is in the log", func() bool {
		return strings.Contains(s.stderr.String(), " trace_id=0af7651916cd43dd8448eb211c80319c")
	})
}

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

// TestPostgresMetrics: the pool and size metrics match PostgreSQL's own values.
func TestPostgresMetrics(t *testing.T) {
	t.Parallel()
	pg := pgtest.Shared(t)
	database := pg.NewDatabase(t, "")
	key := loadKey(t, database)
	s := start(t, withOps(), withArgs("--database", database+"&pool_max_conns=3"))
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
	if got := s.metric("animalstore_postgres_pool_max"); got != 3 {
		t.Errorf("the pool has %v connections at most, want the 3 of its URL", got)
	}
	// The server's own statements use connections too.
	testenv.Eventually(t, "1 to 3 connections are idle after a request", func() bool {
		got := s.metric("animalstore_postgres_pool_idle")
		return got >= 1 && got <= 3
	})
	if waits, waited := s.metric("animalstore_postgres_pool_waits_total"), s.metric("animalstore_postgres_pool_wait_seconds_total"); waits < 1 || waited <= 0 || waited > 60 {
		t.Errorf("%v waits took %v s, want at least the first connection's", waits, waited)
	}
	before := databaseSize(t, database)
	testenv.Eventually(t, "the size is known", func() bool { return s.metric("animalstore_postgres_database_bytes") > 0 })
	// PostgreSQL adds pages while nothing seems to happen.
	if got, after := s.metric("animalstore_postgres_database_bytes"), databaseSize(t, database); got < before-1<<20 || got > after+1<<20 {
		t.Errorf("the database has %v bytes, want %v to %v", got, before, after)
	}

	unlock := lockTables(t, pg, database)
	ended := make(chan struct{})
	var readers sync.WaitGroup
	stop := sync.OnceFunc(func() {
		close(ended)
		unlock()
		readers.Wait()
	})
	defer stop()
	for range 6 { // more than there are connections
		readers.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					c.try("GET", "/v1/pets", "")
				}
			}
		})
	}
	testenv.Eventually(t, "connections are in use, and reads wait for them", func() bool {
		return s.metric("animalstore_postgres_pool_acquired") >= 2 && s.metric("animalstore_postgres_pool_waiting") >= 1
	})
	stop()
	testenv.Eventually(t, "nothing waits", func() bool {
		return strings.Contains(s.metrics(), "\nanimalstore_postgres_pool_acquired 0\n") && strings.Contains(s.metrics(), "\nanimalstore_postgres_pool_waiting 0\n")
	})
}

// databaseSize queries PostgreSQL itself.
func databaseSize(t *testing.T, database string) (bytes float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database())::float8").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestRedisMetrics: each request is one decision, made with or without Redis, and the
// time of the calls is plausible.
func TestRedisMetrics(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := start(t, withOps(), withArgs("--redis", redis.URL()))
	c := newClient(t, s, loadKey(t, s.database))
	const requests = 20
	sent := 0.0
	send := func() {
		for range requests {
			wantStatus(t, c.get(t, "/v1/limits"), 200, "")
		}
		sent += requests
	}
	wantDecided := func(when string) {
		t.Helper()
		if shared, alone := s.metric(sharedDecisions), s.metric(fallbackDecisions); shared+alone != sent {
			t.Errorf("%s: %v decisions by Redis and %v without it, want %v in all", when, shared, alone, sent)
		}
	}
	begun := time.Now()
	// On a busy machine the first call may be late, and all other requests be decided
	// without Redis before it is asked again.
	testenv.Eventually(t, "Redis decides requests", func() bool {
		send()
		return s.metric(sharedDecisions) > 0
	})
	wantDecided("at first")
	calls, took := s.metric("animalstore_redis_calls_total"), s.metric("animalstore_redis_call_seconds_total")
	if shared := s.metric(sharedDecisions); calls < shared {
		t.Errorf("%v decisions by Redis in %v calls, want a call for each", shared, calls)
	}
	if most := time.Since(begun).Seconds() * 16; took <= 0 || took > most { // only a few calls run at once
		t.Errorf("%v calls took %v s, want more than 0 and less than %v", calls, took, most)
	}
	// On a busy machine a call may have been late. A server that already decides alone
	// wouldn't notice that Redis stops.
	awaitShared := func() {
		t.Helper()
		testenv.Eventually(t, "limits are shared", func() bool { return strings.Contains(s.metrics(), "\n"+fallbackNow+" 0\n") })
	}
	awaitShared()
	fallbacks, failures := s.metric("animalstore_limit_fallbacks_total"), s.metric("animalstore_redis_failures_total")
	if fallbacks == 0 && failures > 0 {
		t.Errorf("%v failures without a fallback", failures)
	}

	redis.Stop() // a connection that ends between two calls isn't a call that failed
	send()
	wantDecided("without Redis")
	if got := s.metric(fallbackNow); got != 1 {
		t.Errorf("%s is %v without Redis, want 1", fallbackNow, got)
	}
	if got := s.metric(fallbackDecisions); got < requests {
		t.Errorf("%v decisions without Redis, want %d or more", got, requests)
	}
	for series, before := range map[string]float64{"animalstore_limit_fallbacks_total": fallbacks, "animalstore_redis_failures_total": failures} {
		if got := s.metric(series); got <= before {
			t.Errorf("%s is %v after Redis was stopped, and was %v before", series, got, before)
		}
	}

	redis.Kill()
	redis.Restart()
	awaitShared()
	shared := s.metric(sharedDecisions)
	testenv.Eventually(t, "Redis decides again", func() bool {
		send()
		return s.metric(sharedDecisions) > shared
	})
	wantDecided("with Redis again")
	testenv.Eventually(t, "Redis is found to have forgotten the key", func() bool {
		redis.Flush()
		send()
		return s.metric("animalstore_redis_forgotten_keys_total") >= 1
	})
}
