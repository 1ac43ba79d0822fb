package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db/dbtest"
)

// TestEventsSince inserts events from another connection.
func TestEventsSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	dbtest.EventsSince(t, d, func(statement string) { script(t, path, statement) })
}
