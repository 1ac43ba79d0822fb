//go:build unix

package postgres

import (
	"context"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// begin begins a transaction on its own connection and runs a statement in it. It ends
// with the test.
func begin(t *testing.T, url, statement string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	if _, err := c.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// TestDispatchWhileFailuresAreStored_Slow: every instance stores failures once a second, and
// dispatches events all the same.
func TestDispatchWhileFailuresAreStored_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	webhook, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "secret", animalstore.At(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	awaitCreate(t, d, "new")
	mustPublish(t, d)
	begin(t, url, "SELECT pg_advisory_xact_lock($1)", int64(failuresLock))
	if _, err := d.DispatchEvents(t.Context(), animalstore.At(time.Now()), 100); err != nil {
		t.Fatal(err)
	}
	all, err := d.Deliveries(t.Context(), webhook.ID, animalstore.DeliveryQuery{}, db.Page{Limit: 10})
	if err != nil || len(all) != 1 {
		t.Errorf("got %d deliveries, %v, want one", len(all), err)
	}
}

// TestCreatesDontWaitForOtherChanges_Slow: the first key and a webhook are created while a
// transaction that changes others is open.
func TestCreatesDontWaitForOtherChanges_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	begin(t, url, "LOCK TABLE keys, webhooks IN ROW EXCLUSIVE MODE") // as every change does
	key := animalstore.NewKey{Name: "owner", Plan: animalstore.PlanFree, Environment: animalstore.Production, Permissions: animalstore.Admin}
	if created, err := d.CreateFirstKey(t.Context(), key, db.KeyHash{1}, animalstore.At(time.Now())); err != nil || !created {
		t.Errorf("first key: created %v, %v", created, err)
	}
	if _, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "secret", animalstore.At(time.Now())); err != nil {
		t.Errorf("webhook: %v", err)
	}
}
