package postgres

import (
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
)

func TestBulkContract(t *testing.T) {
	server := pgtest.Shared(t)
	template := server.NewDatabase(t, "")
	mustOpen(t, template, Options{Timeout: patient}).Close()
	dbtest.RunBulk(t, func(t *testing.T) db.DB {
		return mustOpen(t, server.NewDatabase(t, pgtest.Name(template)), Options{Timeout: patient})
	})
}
