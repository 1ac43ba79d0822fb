//go:build unix

package postgres

import (
	"context"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
)

// TestRoundTrips counts on the wire how often an operation waits for a response, once
// its statements are prepared.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, url)
	d := mustOpen(t, proxy.URL(url)+"&pool_max_conns=1", Options{Timeout: patient})
	rex := animalstore.NewPet{Name: "Rex", CategoryID: 1}
	pet, _, err := d.CreatePet(t.Context(), rex, nil)
	if err != nil {
		t.Fatal(err)
	}
	order, _, err := d.PlaceOrder(t.Context(), pet.ID, animalstore.AtMilli(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := d.CreateKey(t.Context(), animalstore.NewKey{Name: "k", Plan: "free", Permissions: 1, Environment: "production"}, db.KeyHash{1}, animalstore.AtMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	for name, op := range map[string]func(context.Context) error{
		"CreatePet": func(ctx context.Context) error { _, _, err := d.CreatePet(ctx, rex, nil); return err },
		"Pet":       func(ctx context.Context) error { _, err := d.Pet(ctx, pet.ID); return err },
		"Pets":      func(ctx context.Context) error { _, err := d.Pets(ctx, db.PetQuery{Limit: 20}); return err },
		"Pets by category": func(ctx context.Context) error {
			_, err := d.Pets(ctx, db.PetQuery{CategoryID: &one, Limit: 20})
			return err
		},
		"Order":       func(ctx context.Context) error { _, err := d.Order(ctx, order.ID); return err },
		"Orders":      func(ctx context.Context) error { _, err := d.Orders(ctx, db.OrderQuery{Limit: 20}); return err },
		"Category":    func(ctx context.Context) error { _, err := d.Category(ctx, 1); return err },
		"Categories":  func(ctx context.Context) error { _, err := d.Categories(ctx, db.CategoryQuery{Limit: 20}); return err },
		"KeyByHash":   func(ctx context.Context) error { _, _, err := d.KeyByHash(ctx, db.KeyHash{1}); return err },
		"KeysVersion": func(ctx context.Context) error { _, err := d.KeysVersion(ctx); return err },
		"Key":         func(ctx context.Context) error { _, err := d.Key(ctx, key.ID); return err },
		"Keys":        func(ctx context.Context) error { _, err := d.Keys(ctx, db.KeyQuery{Limit: 20}); return err },
		"Usage":       func(ctx context.Context) error { _, err := d.Usage(ctx, key.ID, animalstore.AtMilli(1)); return err },
		"LimitState":  func(ctx context.Context) error { _, err := d.LimitState(ctx, key.ID); return err },
		"Ping":        d.Ping,
	} {
		if err := op(t.Context()); err != nil { // prepares its statement
			t.Fatalf("%s: %v", name, err)
		}
		const times = 20
		before := proxy.Turns()
		for range times {
			if err := op(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := proxy.Turns() - before; got != times {
			t.Errorf("%d × %s: got %d round trips, want %d", times, name, got, times)
		}
	}
}

// TestConnectionsStay: connections are reused, also with TLS. One that is mistaken for
// dead each time would cost several more round trips.
func TestConnectionsStay(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	server.EnableTLS(t)
	url := server.NewDatabase(t, "")
	for name, url := range map[string]string{"plain": url, "TLS": pgtest.WithTLS(url)} {
		d := mustOpen(t, url, Options{Timeout: patient})
		for i := range 50 {
			mustCreate(t, d, name)
			if _, err := d.Pets(t.Context(), db.PetQuery{Limit: 10 + i}); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.pool.Stat().NewConnsCount(); got != 1 {
			t.Errorf("%s: got %d connections for one caller, want 1", name, got)
		}
	}
}
