package dbtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

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
		return func() error {
			_, err := d.UpdateKey(t.Context(), key.ID, noon, func(k *animalstore.Key, _ bool) error { change(k); return nil })
			return err
		}
	}
	seen := map[string]string{keysVersion(t, d): "the start"}
	for _, c := range []struct {
		what    string
		do      func() error
		changes bool
	}{
		{"a name", update(func(k *animalstore.Key) { k.Name = "two" }), true},
		{"a plan", update(func(k *animalstore.Key) { k.Plan = animalstore.PlanPro }), true},
		{"a limit per minute", update(func(k *animalstore.Key) { k.Limits.PerMinute++ }), true},
		{"a limit per day", update(func(k *animalstore.Key) { k.Limits.PerDay++ }), true},
		{"permissions", update(func(k *animalstore.Key) { k.Permissions = animalstore.Read }), true},
		{"an expiry", update(func(k *animalstore.Key) { k.ExpiresAt = later }), true},
		{"an unban without a ban, which has no event", update(func(k *animalstore.Key) { k.UnbannedAt = noon }), true},
		{"a rotation", func() error {
			_, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("second"), At: noon, OldUntil: later}, nil)
			return err
		}, true},
		{"a new key", func() error {
			_, err := d.CreateKey(t.Context(), plainKey(t, "new"), hashOf("new"), noon)
			return err
		}, true},
		{"usage", func() error {
			return d.SaveUsage(t.Context(), []animalstore.Usage{{KeyID: key.ID, Hour: noon, Admitted: 1, LastUsed: later}})
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
		version := keysVersion(t, d)
		if changed := version != before; changed != c.changes {
			t.Errorf("%s: the version changed: %t, want %t", c.what, changed, c.changes)
		}
		if earlier, known := seen[version]; known && c.changes {
			t.Errorf("%s: got the version of %s again", c.what, earlier)
		}
		seen[version] = c.what
	}
}

// keysVersionIsCurrent: reading the version after a change has returned gives a
// different value than before the change, even while many others read.
func keysVersionIsCurrent(t *testing.T, d db.DB) {
	const n, times = 4, 10
	for i := range n {
		mustCreateKey(t, d, plainKey(t, fmt.Sprint(i)), fmt.Sprint(i))
	}
	keys := mustKeys(t, d)
	together(t, n, func(i int) error {
		for at := range times {
			before, err := d.KeysVersion(t.Context())
			if err != nil {
				return err
			}
			_, err = d.UpdateKey(t.Context(), keys[i].ID, noon, func(k *animalstore.Key, _ bool) error {
				k.ExpiresAt = animalstore.At(later.Add(time.Duration(at) * time.Hour))
				return nil
			})
			if err != nil {
				return err
			}
			switch after, err := d.KeysVersion(t.Context()); {
			case err != nil:
				return err
			case after == before:
				return fmt.Errorf("change %d of key %d: the version is still %s", at, i, after)
			}
		}
		return nil
	})
}

// KeysVersionCovers returns a check that a statement changes the version, or doesn't.
// Changing any column of keys and secrets changes it, except when a key was last used.
// exec executes SQL as another program would.
func KeysVersionCovers(t *testing.T, d db.DB, exec func(statement string)) (check func(statement string, changes bool)) {
	t.Helper()
	_, err := d.CreateKey(t.Context(), animalstore.NewKey{Name: "k", Plan: "free", Permissions: 1, Environment: "production"}, db.KeyHash{1}, animalstore.AtMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	check = func(statement string, changes bool) {
		t.Helper()
		before := keysVersion(t, d)
		exec(statement)
		if after := keysVersion(t, d); (after != before) != changes {
			t.Errorf("%s: got version %s after %s, want it changed: %t", statement, after, before, changes)
		}
	}
	for _, table := range db.Tables {
		if table.Name != "keys" && table.Name != "key_secrets" {
			continue
		}
		for _, column := range table.Columns {
			check(fmt.Sprintf("UPDATE %s SET %s = %[2]s", table.Name, column.Name), column.Name != "last_used")
		}
	}
	return check
}
