//go:build unix

package postgres

import (
	"testing"

	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestEventsSince_Slow inserts events with its own SQL.
func TestEventsSince_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	dbtest.EventsSince(t, d, func(statement string) { server.MustExec(t, pgtest.Name(url), statement) })
}
