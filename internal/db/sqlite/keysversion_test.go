package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db/dbtest"
)

// TestKeysVersionCoversColumns changes keys from another connection.
func TestKeysVersionCoversColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	check := dbtest.KeysVersionCovers(t, d, func(statement string) { script(t, path, statement) })
	check("INSERT INTO key_secrets SELECT randomblob(32), id, 0 FROM keys", true)
	check("DELETE FROM key_secrets WHERE hash IN (SELECT hash FROM key_secrets LIMIT 1)", true)
	check("INSERT INTO keys SELECT id + 1, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, last_used, revoked_at, unbanned_at FROM keys", false)
	check("DELETE FROM keys WHERE id = 2", true)
}
