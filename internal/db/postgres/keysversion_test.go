//go:build unix

package postgres

import (
	"fmt"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
)

// TestKeysVersionCoversColumns: a change of any column of keys and secrets changes the
// version, whatever program makes it, also an older version of this one. When a key was
// last used doesn't count.
func TestKeysVersionCoversColumns(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
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
		server.MustExec(t, pgtest.Name(url), "SET "+eventsSetting+" = 'on'; "+statement)
		if after, err := d.KeysVersion(t.Context()); err != nil || (after != before) != changes {
			t.Errorf("%s: got version %s, %v after %s, want another one: %t", statement, after, err, before, changes)
		}
	}
	for _, table := range db.Tables {
		if table.Name != "keys" && table.Name != "key_secrets" {
			continue
		}
		for _, column := range table.Columns {
			statement := fmt.Sprintf("UPDATE %s SET %s = %[2]s", table.Name, column.Name)
			if table.Serial && column.Name == "id" {
				statement = "UPDATE keys SET id = DEFAULT WHERE false" // the only way, and a trigger of the statement
			}
			check(statement, column.Name != "last_used")
		}
	}
	check("INSERT INTO key_secrets SELECT sha256('x'), id, 0 FROM keys", true)
	check("DELETE FROM key_secrets", true)
	check("UPDATE keys SET last_used = 1", false)
	check("DELETE FROM keys", true)
	check("TRUNCATE key_secrets", true)
}
