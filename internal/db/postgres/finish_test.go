//go:build unix

package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// addPings creates a webhook with deliveries that are due.
func addPings(t *testing.T, d *DB, n int) (webhookID int64, now, lease animalstore.Time) {
	t.Helper()
	now = animalstore.At(time.Now())
	webhook, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "secret", now)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := d.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, now); err != nil {
			t.Fatal(err)
		}
	}
	return webhook.ID, now, animalstore.At(now.Add(time.Hour))
}

func delivered(due *db.ClaimedDelivery, at animalstore.Time) db.DeliveryResult {
	return due.Result(animalstore.Attempt{Time: at, Status: new(200)}, 0, 0)
}

// TestLostClaims_Slow: if the response to a commit is lost, nobody knows of the claims that it
// stored. They are released, so that the deliveries don't wait for the end of a lease.
func TestLostClaims_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, url)
	d := mustOpen(t, proxy.URL(url), Options{Timeout: testenv.Deadline})
	_, now, lease := addPings(t, d, db.MaxInFlight+1)
	lost := proxy.LoseResponse("commit\x00")
	if _, err := d.ClaimDeliveries(t.Context(), now, lease); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("claiming: got %v, want ErrOutcomeUnknown", err)
	}
	<-lost
	var due []db.ClaimedDelivery
	claimed := func(n int) func() bool {
		return func() bool {
			some, err := d.ClaimDeliveries(t.Context(), now, lease)
			if err != nil {
				t.Fatal(err)
			}
			due = append(due, some...)
			return len(due) == n
		}
	}
	testenv.Eventually(t, "all are claimed again", claimed(db.MaxInFlight))
	lost = proxy.LoseResponse("commit\x00")
	if _, _, err := d.FinishDelivery(t.Context(), delivered(&due[0], now), now, lease); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("finishing: got %v, want ErrOutcomeUnknown", err)
	}
	<-lost
	testenv.Eventually(t, "the next one is claimed", claimed(db.MaxInFlight+1))
}

// TestReleaseWaitsForCommit_Slow: a claim whose commit is still under way is released after it.
func TestReleaseWaitsForCommit_Slow(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
	_, now, lease := addPings(t, d, 1)
	if _, err := d.ClaimDeliveries(t.Context(), now, now); err != nil { // a lease that has ended
		t.Fatal(err)
	}
	tx, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	var id int64
	if err := tx.QueryRow(t.Context(), "UPDATE deliveries SET leased_until = $1 RETURNING id", lease.Milli()).Scan(&id); err != nil {
		t.Fatal(err)
	}
	released := make(chan error)
	go func() { released <- d.ReleaseDelivery(t.Context(), db.ClaimedDelivery{ID: id, Lease: lease}) }()
	testenv.Eventually(t, "the release waits", func() bool {
		select {
		case err := <-released:
			t.Fatalf("the release didn't wait: %v", err)
		default:
		}
		var waiting bool
		err := d.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())").Scan(&waiting)
		return err == nil && waiting
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if due, err := d.ClaimDeliveries(t.Context(), now, lease); err != nil || len(due) != 1 {
		t.Errorf("claimed %d, %v, want the one that was released", len(due), err)
	}
}

// TestLapsedClaim_Slow: of two results of a delivery that are stored together, the one whose lease
// has ended is ignored.
func TestLapsedClaim_Slow(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][2]int{"before": {0, 1}, "after": {1, 0}} {
		t.Run(name+" the valid one", func(t *testing.T) {
			t.Parallel()
			d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
			webhook, now, lease := addPings(t, d, 1)
			var calls []finishCall
			for i := range 2 {
				due, err := d.ClaimDeliveries(t.Context(), now, lease)
				if err != nil || len(due) != 1 {
					t.Fatalf("claimed %d, %v, want one", len(due), err)
				}
				calls = append(calls, finishCall{result: due[0].Result(animalstore.Attempt{Time: now, Status: new(500 - 300*i)}, 0, 0), now: now})
				now, lease = lease, animalstore.At(lease.Add(time.Hour))
			}
			if _, err := d.finishDeliveries(t.Context(), webhook, []finishCall{calls[order[0]], calls[order[1]]}); err != nil {
				t.Fatal(err)
			}
			all, err := d.Deliveries(t.Context(), db.DeliveryQuery{WebhookID: webhook, Limit: 10})
			if err != nil || len(all) != 1 || all[0].State != animalstore.DeliveryDelivered || len(all[0].Attempts) != 1 {
				t.Errorf("got %+v, %v, want one delivery with one attempt, which succeeded", all, err)
			}
		})
	}
}
