package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
)

// sweptDB is a database that records how old rows of each table must be to be dropped. The
// first time, it has more of them than are dropped at once.
type sweptDB struct {
	db.DB
	now     time.Time
	dropped map[string][]time.Duration
	broken  string // the table that fails
}

func (d *sweptDB) drop(table string, before animalstore.Time, batch int) (int, error) {
	if table == d.broken {
		return 0, errors.New("the storage is gone")
	}
	d.dropped[table] = append(d.dropped[table], d.now.Sub(before.Time))
	return batch + 1 - len(d.dropped[table]), nil
}

func (d *sweptDB) DropIdempotencyRecords(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("idempotency records", before, batch)
}

func (d *sweptDB) DropDeliveries(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("deliveries", before, batch)
}

func (d *sweptDB) DropUsage(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("usage", before, batch)
}

func (d *sweptDB) DropFailures(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("failures", before, batch)
}

func (d *sweptDB) DropSessions(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("sessions", before, batch)
}

func (d *sweptDB) DropForms(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("forms", before, batch)
}

func (d *sweptDB) DropEvents(_ context.Context, before animalstore.Time, batch int) (int, error) {
	return d.drop("events", before, batch)
}

// TestSweep: a server deletes what has expired, in as many steps as it takes, and no events
// if it keeps them forever. What fails is logged, because tables grow until it succeeds, and
// doesn't keep the others.
func TestSweep(t *testing.T) {
	const day = 24 * time.Hour
	ages := map[string]time.Duration{
		"idempotency records": day, "deliveries": 30 * day, "usage": 90 * day, "failures": 7 * day, "sessions": 0, "forms": day, "events": 365 * day,
	}
	for _, test := range []struct {
		retention time.Duration
		broken    string
	}{{365 * day, ""}, {0, ""}, {365 * day, "usage"}} {
		now := time.Now().Truncate(time.Millisecond) // as it is stored
		store := &sweptDB{now: now, dropped: map[string][]time.Duration{}, broken: test.broken}
		want := map[string][]time.Duration{}
		for table, age := range ages {
			if table != test.broken && (table != "events" || test.retention > 0) {
				want[table] = []time.Duration{age, age}
			}
		}
		var log bytes.Buffer
		cfg := Config{EventsRetention: test.retention, Settings: api.Settings{Log: slog.New(slog.NewTextHandler(&log, nil))},
			Hooks: Hooks{Now: func() time.Time { return now }}}
		s := &Server{cfg: cfg, db: store}
		s.sweepAndReport(t.Context())
		if !maps.EqualFunc(store.dropped, want, slices.Equal) {
			t.Errorf("%+v: dropped %v, want %v", test, store.dropped, want)
		}
		if logged := strings.Contains(log.String(), "level=WARN"); logged != (test.broken != "") {
			t.Errorf("%+v: got the log %q", test, log.String())
		}
	}
}
