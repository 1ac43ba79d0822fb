//go:build unix

package postgres

import (
	"testing"

	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
)

// TestKeysVersionCoversColumns changes keys with SQL of its own, as an operator might.
func TestKeysVersionCoversColumns(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
	check := dbtest.KeysVersionCovers(t, d, func(statement string) {
		if statement == "UPDATE keys SET id = id" {
			statement = "UPDATE keys SET id = DEFAULT WHERE false" // the only way, and a trigger of the statement
		}
		server.MustExec(t, pgtest.Name(url), statement)
	})
	check("INSERT INTO key_secrets SELECT sha256('x'), id, 0 FROM keys", true)
	check("DELETE FROM key_secrets", true)
	check("UPDATE keys SET last_used = 1", false)
	check("DELETE FROM keys", true)
	check("TRUNCATE key_secrets", true)
}
