//go:build unix

package postgres

import (
	"testing"

	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestKeysVersionCoversColumns_Slow changes keys with its own SQL, as an operator might.
func TestKeysVersionCoversColumns_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	dbtest.KeysVersionCovers(t, d, func(statement string) {
		if statement == "UPDATE keys SET id = id" {
			statement = "UPDATE keys SET id = DEFAULT WHERE false" // the only way, and a trigger of the statement
		}
		server.MustExec(t, pgtest.Name(url), statement)
	})
}
