package server

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db/transfer"
	"animalstore/internal/testenv"
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
	status := func(status int) *hookReceiver { return newHookReceiver(t, func() int { return status }) }
	works, fails, gone := status(200), status(503), status(410)
	cfg := deliveringConfig(t, clock, works, fails, gone)
	var log Log
	cfg.Log, cfg.OpsListen = slog.New(slog.NewTextHandler(&log, nil)), "127.0.0.1:0"
	s := run(t, cfg)
	hookTo(t, s.DB(), clock, works, fails, gone)
	addPets(t, s.DB(), 1)
	want := []string{
		`animalstore_webhook_attempts_total{outcome="delivered"} 1`, `animalstore_webhook_attempts_total{outcome="retry"} 1`,
		`animalstore_webhook_attempts_total{outcome="failed"} 1`, `animalstore_webhooks_disabled_total 1`,
		`animalstore_webhooks{state="active"} 2`, `animalstore_webhooks{state="paused"} 0`, `animalstore_webhooks{state="disabled"} 1`,
	}
	testenv.Eventually(t, fmt.Sprintf("the metrics have %q", want), func() bool { return missingMetrics(s.Server, want...) == nil })
	// The line is written after the counter.
	testenv.Eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "a webhook was disabled") })
}

// TestFigures: the metrics have the age of the oldest due delivery, how many wait, and the
// pets by status, of which scrapes make at most one count in ten seconds.
func TestFigures(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond) // as it is stored
	cfg := localConfig(t)
	cfg.OpsListen = "127.0.0.1:0"
	cfg.Hooks.Now, cfg.Hooks.NoBackground = func() time.Time { return now }, true
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	scrape := func(want ...string) {
		t.Helper()
		if missing := missingMetrics(s, want...); missing != nil {
			t.Errorf("the metrics lack %q", missing)
		}
	}
	const none, sold = `animalstore_pets{status="pending"} 0`, `animalstore_pets{status="sold"} 0`
	addPets(t, s.DB(), 2)
	webhook, err := s.DB().CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/hook", Types: "pet.*"},
		"whsec_b25l", animalstore.At(now))
	if err != nil {
		t.Fatal(err)
	}
	scrape(`animalstore_pets{status="available"} 2`, none, sold,
		"animalstore_inventory_counts_total 1", "animalstore_webhook_oldest_due_seconds 0")
	addPets(t, s.DB(), 1)
	for _, age := range []time.Duration{-time.Hour, 90 * time.Second, 5 * time.Second} {
		if _, err := s.DB().PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, animalstore.At(now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	scrape("animalstore_webhook_oldest_due_seconds 90", "animalstore_webhook_deliveries_waiting 3")
	now = now.Add(10 * time.Second)
	scrape(`animalstore_pets{status="available"} 2`, "animalstore_inventory_counts_total 1")
	now = now.Add(time.Second)
	scrape(`animalstore_pets{status="available"} 3`, "animalstore_inventory_counts_total 2")
}

// TestBackupMetrics: the metrics say when the newest backup began and when the next is due.
func TestBackupMetrics(t *testing.T) {
	cfg := localConfig(t)
	cfg.OpsListen = "127.0.0.1:0"
	cfg.Backups = transfer.Schedule{Dir: t.TempDir(), Every: 90 * time.Minute, Keep: 1}
	cfg.Hooks.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	s := run(t, cfg)
	want := []string{"animalstore_backup_interval_seconds 5400", "animalstore_backup_last_success_timestamp_seconds 1.7e+09", "animalstore_backup_failures_total 0"}
	testenv.Eventually(t, fmt.Sprintf("the metrics have %q", want), func() bool { return missingMetrics(s.Server, want...) == nil })
}
