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
		for _, u := range usage {
			err := sqlitex.Execute(c, `INSERT INTO usage (key_id, hour, admitted, refused) VALUES (?, ?, ?, ?)
				ON CONFLICT (key_id, hour) DO UPDATE SET admitted = admitted + excluded.admitted, refused = refused + excluded.refused`,
				&sqlitex.ExecOptions{Args: []any{u.KeyID, u.Hour.Milli(), u.Admitted, u.Refused}})
			if err != nil {
				return fmt.Errorf("save usage: %w", err)
			}
			err = sqlitex.Execute(c, "UPDATE keys SET last_used = max(last_used, ?) WHERE id = ?",
				&sqlitex.ExecOptions{Args: []any{u.LastUsed.Milli(), u.KeyID}})
			if err != nil {
				return fmt.Errorf("save last use: %w", err)
			}
		}
		return nil
	})
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
