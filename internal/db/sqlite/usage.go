package sqlite

import (
	"context"
	"fmt"

	"animalstore"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// SaveUsage implements [db.DB].
func (d *DB) SaveUsage(ctx context.Context, usage []animalstore.Usage) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		// Prepared once for all rows, because that takes as long as a part of a row does.
		add, err := c.Prepare("UPDATE usage SET admitted = admitted + ?3, refused = refused + ?4 WHERE key_id = ?1 AND hour = ?2")
		if err != nil {
			return fmt.Errorf("save usage: %w", err)
		}
		use, err := c.Prepare("UPDATE keys SET last_used = ?2 WHERE id = ?1 AND last_used < ?2")
		if err != nil {
			return fmt.Errorf("save last use: %w", err)
		}
		for i := range usage {
			u := &usage[i]
			if err := addUsage(c, add, u.KeyID, u.Hour.Milli(), u.Admitted, u.Refused); err != nil {
				return fmt.Errorf("save usage: %w", err)
			}
			if err := stepInts(use, u.KeyID, u.LastUsed.Milli()); err != nil {
				return fmt.Errorf("save last use: %w", err)
			}
		}
		return nil
	})
}

// addUsage adds to the row of a key's hour with the statement add. There nearly always is
// one, and an INSERT that updates it instead takes longer, because it checks first whether
// the key exists.
func addUsage(c *sqlite.Conn, add *sqlite.Stmt, row ...int64) error {
	if err := stepInts(add, row...); err != nil || c.Changes() > 0 {
		return err
	}
	insert, err := c.Prepare("INSERT INTO usage (key_id, hour, admitted, refused) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	return stepInts(insert, row...)
}

// stepInts carries out a statement that returns no rows.
func stepInts(stmt *sqlite.Stmt, args ...int64) error {
	for i, arg := range args {
		stmt.BindInt64(i+1, arg)
	}
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

// Usage implements [db.DB].
func (d *DB) Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	usage := []animalstore.Usage{}
	err := d.read(ctx, func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "SELECT hour, admitted, refused FROM usage WHERE key_id = ? AND hour >= ? ORDER BY hour DESC", &sqlitex.ExecOptions{
			Args: []any{keyID, since.Milli()},
			ResultFunc: func(stmt *sqlite.Stmt) error {
				usage = append(usage, animalstore.Usage{
					KeyID:    keyID,
					Hour:     animalstore.AtMilli(stmt.ColumnInt64(0)),
					Admitted: stmt.ColumnInt64(1),
					Refused:  stmt.ColumnInt64(2),
				})
				return nil
			},
		})
	})
	return usage, err
}

// DropUsage implements [db.DB].
func (d *DB) DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop usage",
		"DELETE FROM usage WHERE (key_id, hour) IN (SELECT key_id, hour FROM usage WHERE hour < ? LIMIT ?)", before, max)
}
