package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// writeOrReplay runs write, which sets result, unless there is an idempotency record
// of it: then it sets result to the stored one. Write transactions run one at a time,
// so the first write can't be in progress.
func writeOrReplay(c *sqlite.Conn, retry *db.Idempotency, result any, write func() error) (replayed bool, err error) {
	if retry == nil {
		return false, write()
	}
	var stored, hash []byte
	err = sqlitex.Execute(c, "SELECT body_hash, answer FROM answers WHERE key_id = ? AND route = ? AND token = ? AND created_at > ?", &sqlitex.ExecOptions{
		Args: []any{retry.KeyID, retry.Route, retry.Token, retry.At.Add(-db.IdempotencyWindow).UnixMilli()},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			hash = make([]byte, stmt.ColumnLen(0))
			stmt.ColumnBytes(0, hash)
			stored = []byte(stmt.ColumnText(1))
			return nil
		},
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("select idempotency record: %w", err)
	case stored == nil:
	case !bytes.Equal(hash, retry.BodyHash[:]):
		return false, animalstore.Errorf(animalstore.IdempotencyKeyReused, "Idempotency-Key was used for another body: send a new key with a new request, or the same body to retry")
	default:
		return true, json.Unmarshal(stored, result)
	}
	if err := write(); err != nil {
		return false, err
	}
	if stored, err = json.Marshal(result); err != nil {
		return false, err
	}
	err = sqlitex.Execute(c, "INSERT OR REPLACE INTO answers (key_id, route, token, body_hash, answer, created_at) VALUES (?, ?, ?, ?, ?, ?)",
		&sqlitex.ExecOptions{Args: []any{retry.KeyID, retry.Route, retry.Token, retry.BodyHash[:], string(stored), retry.At.Milli()}})
	if err != nil {
		return false, fmt.Errorf("insert idempotency record: %w", err)
	}
	return false, nil
}

// DropIdempotencyRecords implements [db.DB].
func (d *DB) DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop idempotency records",
		"DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE created_at < ? ORDER BY created_at LIMIT ?)", before, max)
}

// drop runs a DELETE whose parameters are a time and a limit.
func (d *DB) drop(ctx context.Context, doing, query string, before animalstore.Time, max int) (dropped int, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		if err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{Args: []any{before.Milli(), max}}); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		dropped = c.Changes()
		return nil
	})
	return dropped, err
}
