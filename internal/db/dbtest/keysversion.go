package dbtest

import (
	"errors"
	"fmt"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

func keysVersion(t *testing.T, d db.DB) string {
	t.Helper()
	version, err := d.KeysVersion(t.Context())
	if err != nil || version == "" {
		t.Fatalf("KeysVersion = %q, %v", version, err)
	}
	return version
}

func keysVersionChanges(t *testing.T, d db.DB) {
	key := adminKey(t, d, "one")
	update := func(change func(*animalstore.Key)) func() error {
		return func() error { mustUpdateKey(t, d, key.ID, change); return nil }
	}
	for _, c := range []struct {
		what    string
		do      func() error
		changes bool
	}{
		{"an expiry", update(func(k *animalstore.Key) { k.ExpiresAt = later }), true},
		{"an unban without a ban, which has no event", update(func(k *animalstore.Key) { k.UnbannedAt = noon }), true},
		{"networks", update(func(k *animalstore.Key) { k.Networks = "203.0.113.0/24" }), true},
		{"a suspension", update(func(k *animalstore.Key) { k.Suspend(noon) }), true},
		{"its end", update(func(k *animalstore.Key) { k.Resume() }), true},
		{"a rotation", func() error {
			_, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("second"), At: noon, OldUntil: later}, nil)
			return err
		}, true},
		{"a new key", func() error {
			_, err := d.CreateKey(t.Context(), plainKey(t, "new"), hashOf("new"), noon)
			return err
		}, true},
		{"usage", func() error {
			return d.SaveUsage(t.Context(), []db.KeyUsage{{KeyID: key.ID, Hour: noon, Admitted: 1, LastUsed: later}})
		}, false},
		{"limits", func() error {
			return d.SaveLimitStates(t.Context(), []db.KeyLimitState{{KeyID: key.ID, LimitState: db.LimitState{Strikes: 1}}})
		}, false},
		{"a pet", func() error { mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1}); return nil }, false},
		{"a change that is refused", func() error {
			_, err := d.UpdateKey(t.Context(), key.ID, noon, func(k *animalstore.Key, _ bool) error { k.Revoke(noon); return errNotNow })
			if !errors.Is(err, errNotNow) {
				return fmt.Errorf("got %w, want it refused", err)
			}
			return nil
		}, false},
		{"a revocation", update(func(k *animalstore.Key) { k.Revoke(noon) }), true},
	} {
		before := keysVersion(t, d)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if changed := keysVersion(t, d) != before; changed != c.changes {
			t.Errorf("%s: the version changed: %t, want %t", c.what, changed, c.changes)
		}
	}
}

// KeysVersionCovers checks that changing any column of keys and secrets changes the version,
// except when a key was last used. exec executes SQL as another program would.
func KeysVersionCovers(t *testing.T, d db.DB, exec func(statement string)) {
	t.Helper()
	_, err := d.CreateKey(t.Context(), animalstore.NewKey{Name: "k", Plan: "free", Permissions: 1, Environment: "production"}, db.KeyHash{1}, animalstore.AtMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range db.Tables {
		if table.Name != "keys" && table.Name != "key_secrets" {
			continue
		}
		for _, column := range table.Columns {
			before, changes := keysVersion(t, d), column.Name != "last_used"
			exec(fmt.Sprintf("UPDATE %s SET %s = %[2]s", table.Name, column.Name))
			if after := keysVersion(t, d); (after != before) != changes {
				t.Errorf("a change of %s.%s: got version %s after %s, want it changed: %t", table.Name, column.Name, after, before, changes)
			}
		}
	}
}
