//go:build unix

package postgres

import (
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
			all, err := d.Deliveries(t.Context(), webhook, animalstore.DeliveryQuery{}, db.Page{Limit: 10})
			if err != nil || len(all) != 1 || all[0].State != animalstore.DeliveryDelivered || len(all[0].Attempts) != 1 {
				t.Errorf("got %+v, %v, want one delivery with one attempt, which succeeded", all, err)
			}
		})
	}
}
