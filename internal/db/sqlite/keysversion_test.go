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
	dbtest.KeysVersionCovers(t, d, func(statement string) { script(t, path, statement) })
}
