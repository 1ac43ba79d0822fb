package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"
)

// namesVersion is the version of the tables that have folded names. Until all pets have
// one, the table names_update exists and the version counts as the one before.
const namesVersion = 7

// foldBatch is how many pets get their folded name in one transaction.
const foldBatch = 20_000

// createNamesIndex contains all columns, so that a page by name is read from the index
// alone.
const createNamesIndex = "CREATE INDEX pets_by_name ON pets (folded_name, id, category_id, status, name)"

// update updates the tables on a connection and tells progress, unless nil, how far it is.
// What it has committed stays if it is interrupted, and the next call continues there.
func (d *DB) update(ctx context.Context, c *sqlite.Conn, progress func(db.Update)) error {
	if err := sqlitemigration.Migrate(ctx, c, schema); err != nil {
		return err
	}
	if unfinished, err := isUnfinished(c); err != nil || !unfinished {
		return err
	}
	defer c.SetInterrupt(c.SetInterrupt(ctx.Done()))
	total, err := selectInt(c, "count pets", "SELECT count(*) FROM pets")
	if progress == nil || total == 0 {
		progress = func(db.Update) {}
	}
	if err == nil {
		err = foldNames(c, total, progress)
	}
	if err == nil {
		progress(db.Update{Step: "building the index of names"})
		err = d.indexNames(c)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// isUnfinished reports whether an update of the names has begun and not ended.
func isUnfinished(c *sqlite.Conn) (bool, error) {
	n, err := selectInt(c, "look for an unfinished update", "SELECT count(*) FROM sqlite_schema WHERE name = 'names_update'")
	return n > 0, err
}

// isUpdating is isUnfinished for a file that another process is using.
func isUpdating(path string) bool {
	c, err := openConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return false
	}
	defer c.Close()
	unfinished, err := isUnfinished(c)
	return unfinished && err == nil
}

// foldNames stores the folded name of all pets, of which there are total.
func foldNames(c *sqlite.Conn, total int64, progress func(db.Update)) error {
	done, err := selectInt(c, "count folded names", "SELECT count(*) FROM pets WHERE id <= (SELECT folded FROM names_update)")
	for more := true; more && err == nil; {
		progress(db.Update{Step: "folding names", Done: done, Total: total})
		var n int
		if n, err = foldSomeNames(c); err == nil {
			// Otherwise the WAL would grow by the whole table.
			err = sqlitex.ExecuteTransient(c, "PRAGMA wal_checkpoint(PASSIVE)", nil)
		}
		done, more = done+int64(n), n == foldBatch
	}
	return err
}

// foldSomeNames stores the next folded names in one transaction and returns how many.
// Another process may be doing the same, so it reads the position inside.
func foldSomeNames(c *sqlite.Conn) (n int, err error) {
	end, err := sqlitex.ImmediateTransaction(c)
	if err != nil {
		return 0, err
	}
	defer end(&err)
	if unfinished, err := isUnfinished(c); err != nil || !unfinished {
		return 0, err
	}
	type pet struct {
		id   int64
		name string
	}
	pets, err := selectAll(c, "select names", func(stmt *sqlite.Stmt) (pet, error) {
		return pet{stmt.ColumnInt64(0), stmt.ColumnText(1)}, nil
	}, "SELECT id, name FROM pets WHERE id > (SELECT folded FROM names_update) ORDER BY id LIMIT ?", foldBatch)
	if err != nil || len(pets) == 0 {
		return 0, err
	}
	for _, p := range pets {
		if err := execute(c, "fold name", "UPDATE pets SET folded_name = ? WHERE id = ?", db.FoldName(p.name), p.id); err != nil {
			return 0, err
		}
	}
	return len(pets), execute(c, "record folded names", "UPDATE names_update SET folded = ?", pets[len(pets)-1].id)
}

// indexNames builds the index and ends the update. SQLite sorts all names for that, in a
// file next to the store: they may not fit in memory, and a directory for temporary files
// may be missing or too small.
func (d *DB) indexNames(c *sqlite.Conn) (err error) {
	directory := "'" + strings.ReplaceAll(filepath.Dir(d.path), "'", "''") + "'"
	for _, pragma := range []string{"PRAGMA temp_store_directory = " + directory, "PRAGMA temp_store = FILE"} {
		if err := sqlitex.ExecuteTransient(c, pragma, nil); err != nil {
			return err
		}
	}
	defer func() {
		err = errors.Join(err, sqlitex.ExecuteTransient(c, "PRAGMA temp_store = MEMORY", nil),
			sqlitex.ExecuteTransient(c, "PRAGMA temp_store_directory = ''", nil))
	}()
	if err := indexInTransaction(c); err != nil {
		return fmt.Errorf("build the index of names: %w", err)
	}
	return sqlitex.ExecuteTransient(c, "PRAGMA wal_checkpoint(TRUNCATE)", nil)
}

func indexInTransaction(c *sqlite.Conn) (err error) {
	end, err := sqlitex.ImmediateTransaction(c)
	if err != nil {
		return err
	}
	defer end(&err)
	if unfinished, err := isUnfinished(c); err != nil || !unfinished {
		return err
	}
	return sqlitex.ExecuteScript(c, createNamesIndex+"; DROP TABLE names_update", nil)
}
