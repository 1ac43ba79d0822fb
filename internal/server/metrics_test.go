package server

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

// missingMetrics returns the lines that a server's metrics lack.
func missingMetrics(s *Server, lines ...string) (missing []string) {
	response := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range lines {
		if !strings.Contains(response.Body.String(), "\n"+line+"\n") {
			missing = append(missing, line)
		}
	}
	return missing
}

// TestWebhookCounts: attempts are counted by outcome and webhooks by state, and
// disabling a webhook is logged.
func TestWebhookCounts(t *testing.T) {
	t.Parallel()
	clock := new(movedClock)
	status := func(status int) *hookReceiver {
		return newHookReceiver(t, clock, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600") // one attempt each
			w.WriteHeader(status)
		})
	}
	works, fails, gone := status(http.StatusNoContent), status(http.StatusServiceUnavailable), status(http.StatusGone)
	cfg := deliveringConfig(filepath.Join(t.TempDir(), "store.db"), clock, works, fails, gone)
	var log Log
	cfg.Log, cfg.OpsListen = slog.New(slog.NewTextHandler(&log, nil)), "127.0.0.1:0"
	s, stop := runServer(t, cfg)
	defer stop()
	for _, r := range []*hookReceiver{works, fails, gone} {
		hookTo(t, s.DB(), r, clock)
	}
	addPets(t, s.DB(), 1)
	want := []string{
		`animalstore_webhook_attempts_total{outcome="delivered"} 1`, `animalstore_webhook_attempts_total{outcome="retry"} 1`,
		`animalstore_webhook_attempts_total{outcome="failed"} 1`, `animalstore_webhooks_disabled_total 1`,
		`animalstore_webhooks{state="active"} 2`, `animalstore_webhooks{state="paused"} 0`, `animalstore_webhooks{state="disabled"} 1`,
	}
	var missing []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if missing = missingMetrics(s, want...); missing == nil {
			break
		}
	}
	if missing != nil {
		t.Errorf("the metrics lack %q", missing)
	}
	// The line is written after the counter.
	within2Minutes(t, "the log says so", func() bool {
		return strings.Contains(log.String(), `msg="a webhook was disabled" webhook=3 reason="the receiver responded with 410 Gone"`)
	})
}

// TestOldestDue: the metrics have the age of the oldest due delivery.
func TestOldestDue(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond) // as it is stored
	s, err := New(t.Context(), Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"), Listen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Hooks: Hooks{Now: func() time.Time { return now }, NoBackground: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	webhook, err := s.DB().CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/hook", Types: "pet.*"}, "whsec_b25l", animalstore.At(now))
	if err != nil {
		t.Fatal(err)
	}
	if missing := missingMetrics(s, "animalstore_webhook_oldest_due_seconds 0"); missing != nil {
		t.Errorf("the metrics lack %q while nothing is due", missing)
	}
	for _, age := range []time.Duration{-time.Hour, 90 * time.Second, 5 * time.Second} {
		if _, err := s.DB().PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, animalstore.At(now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if missing := missingMetrics(s, "animalstore_webhook_oldest_due_seconds 90"); missing != nil {
		t.Errorf("the metrics lack %q", missing)
	}
}

// brokenCounts is a database whose pets can't be counted.
type brokenCounts struct {
	db.DB
	broken atomic.Bool
}

func (b *brokenCounts) CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error) {
	if b.broken.Load() {
		<-ctx.Done()
		return animalstore.Inventory{}, ctx.Err()
	}
	return b.DB.CountPets(ctx, categoryID)
}

// TestPetFigures: the metrics have the pets by status, and scrapes make at most one count
// in ten seconds. They don't wait long for it.
func TestPetFigures(t *testing.T) {
	t.Parallel()
	now := time.Now()
	counts := new(brokenCounts)
	s, err := New(t.Context(), Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"), Listen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Hooks: Hooks{
			Now:          func() time.Time { return now },
			NoBackground: true,
			WrapDB:       func(d db.DB) db.DB { counts.DB = d; return counts },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	addPets(t, s.DB(), 2)
	scrape := func(want ...string) {
		t.Helper()
		if missing := missingMetrics(s, want...); missing != nil {
			t.Errorf("the metrics lack %q", missing)
		}
	}
	const none, sold = `animalstore_pets{status="pending"} 0`, `animalstore_pets{status="sold"} 0`
	scrape(`animalstore_pets{status="available"} 2`, none, sold, "animalstore_inventory_counts_total 1")
	addPets(t, s.DB(), 1)
	now = now.Add(10 * time.Second)
	scrape(`animalstore_pets{status="available"} 2`, none, sold, "animalstore_inventory_counts_total 1")
	now = now.Add(time.Second)
	scrape(`animalstore_pets{status="available"} 3`, none, sold, "animalstore_inventory_counts_total 2")

	counts.broken.Store(true)
	now = now.Add(11 * time.Second)
	began := time.Now()
	if missing := missingMetrics(s, none, "animalstore_webhook_oldest_due_seconds 0"); len(missing) != 1 || missing[0] != none {
		t.Errorf("the metrics lack %q, want only the pets missing", missing)
	}
	if took := time.Since(began); took > 8*time.Second { // a count gives up after ten
		t.Errorf("the scrape took %v, want about %v", took, petsTimeout)
	}
}

// TestRedisFigures: each figure has its own name.
func TestRedisFigures(t *testing.T) {
	stats := ratelimit.RedisStats{Fallback: true, Shared: 1, FallbackDecisions: 2, Outages: 3, Failures: 4, Reseeds: 5, Calls: 6, Took: 7 * time.Second}
	want := map[string]float64{
		"animalstore_limit_fallback":                 1,
		"animalstore_limit_shared_decisions_total":   1,
		"animalstore_limit_fallback_decisions_total": 2,
		"animalstore_limit_fallbacks_total":          3,
		"animalstore_redis_failures_total":           4,
		"animalstore_redis_forgotten_keys_total":     5,
		"animalstore_redis_calls_total":              6,
		"animalstore_redis_call_seconds_total":       7,
	}
	got := map[string]float64{}
	for _, f := range redisFigures(stats) {
		got[f.Metric] = f.Value
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	stats.Fallback = false
	if f := redisFigures(stats)[0]; f.Value != 0 {
		t.Errorf("after Redis came back: got %v, want 0", f)
	}
}
