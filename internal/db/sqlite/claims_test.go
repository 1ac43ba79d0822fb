package sqlite

import (
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// claimStore is a store with a webhook and one delivery, a ping, and a function that claims
// what is due and expects a number of deliveries.
func claimStore(t *testing.T) (d *DB, now animalstore.Time, claim func(d *DB, want int) []db.ClaimedDelivery) {
	d = newStore(t)
	now = animalstore.At(time.Now())
	webhook, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "whsec_b25l", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, now); err != nil {
		t.Fatal(err)
	}
	return d, now, func(d *DB, want int) []db.ClaimedDelivery {
		t.Helper()
		due, err := d.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
		if err != nil || len(due) != want {
			t.Fatalf("claimed %d, %v, want %d", len(due), err, want)
		}
		return due
	}
}

// TestAbandonedClaims: what a server that was killed had claimed is due again when the
// next one starts.
func TestAbandonedClaims(t *testing.T) {
	t.Parallel()
	d, _, claim := claimStore(t)
	claim(d, 1)
	claim(d, 0)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	claim(mustOpen(t, d.path, Options{Serve: true}), 1)
}

// TestResultStoredTwice: if it isn't known whether a result was stored, it is stored again
// and counts once. The delivery isn't claimed in between.
func TestResultStoredTwice(t *testing.T) {
	t.Parallel()
	d, now, claim := claimStore(t)
	due := claim(d, 1)
	r := due[0].Result(animalstore.Attempt{Time: now, Status: new(503)}, 0, 0)
	r.State = animalstore.DeliveryPending // as that of an event would be
	r.Next = now
	err := d.writer.do(t.Context(), func(c *sqlite.Conn) error { return storeResult(c, &r) })
	if err != nil {
		t.Fatal(err)
	}
	claim(d, 0)
	if _, _, err := d.FinishDelivery(t.Context(), r, now, animalstore.Time{}); err != nil {
		t.Fatal(err)
	}
	again := claim(d, 1)
	all, err := d.Deliveries(t.Context(), due[0].WebhookID, animalstore.DeliveryQuery{}, db.Page{Limit: 2})
	if err != nil || len(all) != 1 || len(all[0].Attempts) != 1 || again[0].Tries != 1 {
		t.Errorf("got %+v, %v, %d tries, want one attempt", all, err, again[0].Tries)
	}
}
