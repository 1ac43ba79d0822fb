//go:build unix

package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Close()
	os.Exit(code)
}

// patient is a timeout for tests that don't test timeouts, on a busy machine.
const patient = time.Minute

// emptied deletes all rows, and starts ids again at 1.
var emptied = func() string {
	var statements strings.Builder
	for _, table := range []string{"deliveries", "webhooks", "webhook_position", "pets", "categories", "orders", "answers", "key_secrets", "usage",
		"limit_states", "keys", "events", "event_queue", "console_sessions", "console_forms"} {
		fmt.Fprintf(&statements, "DELETE FROM %s;", table)
	}
	for _, table := range []string{"pets", "orders", "keys", "webhooks", "deliveries"} {
		fmt.Fprintf(&statements, "SELECT setval(pg_get_serial_sequence('%s', 'id'), 1, false);", table)
	}
	return statements.String()
}()

func TestContract(t *testing.T) {
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	dbtest.Run(t, func(t *testing.T) db.DB {
		// Like a new database, but much faster. So is deleting a few rows, compared with
		// TRUNCATE, which makes a new file for each table and index.
		_, err := d.pool.Exec(t.Context(), emptied)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// mustOpen opens a database and closes it when the test ends.
func mustOpen(t *testing.T, url string, opts Options) *DB {
	t.Helper()
	d, err := Open(context.Background(), url, opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}
