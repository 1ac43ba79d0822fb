package server

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
)

func openStore(t *testing.T) db.DB {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// sweep deletes what is too old for a server at this time.
func sweep(t *testing.T, store db.DB, now time.Time, eventsRetention time.Duration) {
	t.Helper()
	cfg := Config{Hooks: Hooks{Now: func() time.Time { return now }}, EventsRetention: eventsRetention}
	(&Server{cfg: cfg, db: store}).sweepOnce(t.Context())
}

// TestSweep: a server deletes usage older than 90 days, and nothing else.
func TestSweep(t *testing.T) {
	store := openStore(t)
	key := animalstore.NewKey{Name: "swept", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}
	if err := key.Validate(); err != nil {
		t.Fatal(err)
	}
	made, err := store.CreateKey(t.Context(), key, [32]byte{}, animalstore.At(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	oldest := time.Now().Add(-animalstore.UsageKept).Truncate(time.Hour)
	var usage []db.KeyUsage
	var want []animalstore.Usage
	for hour := -(sweepBatch + 10); hour <= 3; hour++ {
		at := animalstore.At(oldest.Add(time.Duration(hour) * time.Hour))
		usage = append(usage, db.KeyUsage{KeyID: made.ID, Hour: at, Admitted: 1})
		if hour > 0 {
			want = append(want, animalstore.Usage{Hour: at, Admitted: 1})
		}
	}
	slices.Reverse(want)
	if err := store.SaveUsage(t.Context(), usage); err != nil {
		t.Fatal(err)
	}
	sweep(t, store, time.Now(), 0)
	got, err := store.Usage(t.Context(), made.ID, animalstore.Time{})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d hours left, %v, want the %d of the last 90 days", len(got), err, len(want))
	}
}

// TestSweepEvents: a server deletes events older than its retention, except the newest,
// and none if it keeps them forever.
func TestSweepEvents(t *testing.T) {
	store := openStore(t)
	const changes = sweepBatch + 10
	for i := range changes {
		if _, err := store.PutCategory(t.Context(), animalstore.Category{ID: int64(i), Name: "x"}, func(*animalstore.Category) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		retention time.Duration
		want      int64
	}{{-1, 0}, {48 * time.Hour, 0}, {12 * time.Hour, changes - 1}} {
		sweep(t, store, time.Now().Add(24*time.Hour), c.retention)
		if first, newest, err := store.EventRange(t.Context()); err != nil || first != c.want || newest != changes {
			t.Errorf("retention %v: got events after %d to %d, %v, want after %d to %d", c.retention, first, newest, err, c.want, changes)
		}
	}
}

// TestSweepDeliveries: a server deletes deliveries older than 30 days, and nothing
// else.
func TestSweepDeliveries(t *testing.T) {
	store := openStore(t)
	now := time.Now()
	webhook, err := store.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/hook", Types: "pet.*"}, "whsec_b25l", animalstore.At(now))
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, age := range []time.Duration{db.DeliveriesKept + time.Hour, db.DeliveriesKept + time.Second, db.DeliveriesKept, time.Hour} {
		ping, err := store.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, animalstore.At(now.Add(-age)))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ping.ID)
	}
	sweep(t, store, now, 0)
	left, err := store.Deliveries(t.Context(), db.DeliveryQuery{WebhookID: webhook.ID, Limit: 10})
	if err != nil || len(left) != 2 || left[0].ID != ids[3] || left[1].ID != ids[2] {
		t.Errorf("got %+v, %v, want the two of the last 30 days", left, err)
	}
}

// TestSweepFailures: a server deletes failed requests older than seven days, and nothing else.
func TestSweepFailures(t *testing.T) {
	store := openStore(t)
	now := time.Now()
	const week = 7 * 24 * time.Hour
	var failures []animalstore.Failure
	for _, age := range []time.Duration{week + time.Hour, week + time.Second, week, time.Hour} {
		failures = append(failures, animalstore.Failure{Time: animalstore.At(now.Add(-age)), KeyID: 1, Code: animalstore.PetNotFound, RequestID: age.String()})
	}
	if err := store.AddFailures(t.Context(), failures, db.KeptFailures); err != nil {
		t.Fatal(err)
	}
	sweep(t, store, now, 0)
	left, err := store.Failures(t.Context(), db.FailureQuery{Limit: 10})
	if err != nil || len(left) != 2 || left[0].RequestID != time.Hour.String() || left[1].RequestID != week.String() {
		t.Errorf("got %+v, %v, want the two of the last seven days", left, err)
	}
}

// TestSweepFails: a sweep that fails is logged, because tables grow until one succeeds.
func TestSweepFails(t *testing.T) {
	store := openStore(t)
	store.Close()
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	s := &Server{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Hooks: Hooks{Now: time.Now}}, db: store}
	s.sweepAndReport(ctx)
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("got the log %q, want a warning", log.String())
	}
	log.Reset()
	cancel()
	if s.sweepAndReport(ctx); log.Len() > 0 {
		t.Errorf("while the server stops, got the log %q, want nothing", log.String())
	}
}
