package sqlite

import (
	"testing"

	"animalstore"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// writePages writes about that many pages, in many transactions, and returns how many are
// in the WAL then.
func writePages(t *testing.T, d *DB, pages int) (inWAL int) {
	t.Helper()
	for range pages / 100 {
		err := d.writer.do(t.Context(), func(c *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(c, "INSERT INTO categories VALUES ((SELECT count(*) FROM categories), printf('%.400000c', 'x'))", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := sqlite.OpenConn(d.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if inWAL, err = (&writer{conn: c}).walPages(); err != nil {
		t.Fatal(err)
	}
	return inWAL
}

// TestIdleReadersLetTheWALRestart: readers that have read once don't keep the WAL from
// restarting.
func TestIdleReadersLetTheWALRestart(t *testing.T) {
	d := newStore(t)
	forEachReader(d, func() {
		if _, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	})
	if pages := writePages(t, d, 3*checkpointPages); pages > 2*checkpointPages {
		t.Errorf("the WAL has %d pages, want about %d", pages, checkpointPages)
	}
}

// TestForeignReader: another program may read the file for as long as it likes. Writes go
// on, with a WAL that can't restart until it is done.
func TestForeignReader(t *testing.T) {
	d := newStore(t)
	d.writer.force, d.writer.forceAt = checkpointPages, checkpointPages // wait for readers early
	foreign, err := sqlite.OpenConn(d.path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	for _, query := range []string{"BEGIN", "SELECT count(*) FROM pets"} {
		if err := sqlitex.ExecuteTransient(foreign, query, nil); err != nil {
			t.Fatal(err)
		}
	}
	if pages := writePages(t, d, 3*checkpointPages); pages < 3*checkpointPages {
		t.Errorf("the WAL has %d pages, want at least %d", pages, 3*checkpointPages)
	}
	err = d.writer.do(t.Context(), func(c *sqlite.Conn) error {
		if d.writer.forceAt <= checkpointPages {
			t.Error("no checkpoint waited for the reader")
		}
		wantPragmas(t, "the writer after a checkpoint", c, "busy_timeout")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := sqlitex.ExecuteTransient(foreign, "COMMIT", nil); err != nil {
		t.Fatal(err)
	}
	if pages := writePages(t, d, checkpointPages); pages > checkpointPages {
		t.Errorf("the WAL has %d pages after the reader, want it to have restarted", pages)
	}
}
