package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
)

func TestBulkContract(t *testing.T) {
	dbtest.RunBulk(t, func(t *testing.T) db.DB {
		return mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	})
}
