package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestKeysVersionCoversColumns: a change of any column of keys and secrets changes the
// version, whatever program makes it. When a key was last used doesn't count.
func TestKeysVersionCoversColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	_, err := d.CreateKey(t.Context(), animalstore.NewKey{Name: "k", Plan: "free", Permissions: 1, Environment: "production"}, db.KeyHash{1}, animalstore.AtMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	check := func(statement string, changes bool) {
		t.Helper()
		before, err := d.KeysVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		script(t, path, statement) // from another connection
		if after, err := d.KeysVersion(t.Context()); err != nil || (after != before) != changes {
			t.Errorf("%s: got version %s, %v after %s, want another one: %t", statement, after, err, before, changes)
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
	check("INSERT INTO key_secrets SELECT randomblob(32), id, 0 FROM keys", true)
	check("DELETE FROM key_secrets WHERE hash IN (SELECT hash FROM key_secrets LIMIT 1)", true)
	check("INSERT INTO keys SELECT id + 1, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, last_used, revoked_at, unbanned_at FROM keys", false)
	check("DELETE FROM keys WHERE id = 2", true)
}
