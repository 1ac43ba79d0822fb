package sqlite

import (
	"context"
	"encoding/json"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// replayable is the result of a write that clients may retry.
type replayable[T any] struct {
	result   T
	replayed bool
}

// writeOrReplay runs write, which sets result, unless there is an idempotency record
// of it: then it sets result to the stored one. Write transactions run one at a time,
// so the first write can't be in progress.
func writeOrReplay(c *sqlite.Conn, idempotency *db.Idempotency, result any, write func() error) (replayed bool, err error) {
	if idempotency == nil {
		return false, write()
	}
	var hash []byte
	stored := ""
	err = selectEach(c, "select idempotency record", func(stmt *sqlite.Stmt) error {
		hash = make([]byte, stmt.ColumnLen(0))
		stmt.ColumnBytes(0, hash)
		stored = stmt.ColumnText(1)
		return nil
	}, "SELECT body_hash, answer FROM answers WHERE key_id = ? AND route = ? AND token = ? AND created_at > ?",
		idempotency.KeyID, idempotency.Route, idempotency.Token, idempotency.ExpiredAt().Milli())
	if err != nil {
		return false, err
	}
	if hash != nil {
		err := idempotency.Replay(hash, stored, result)
		return err == nil, err
	}
	if err := write(); err != nil {
		return false, err
	}
	answer, err := json.Marshal(result)
	if err != nil {
		return false, err
	}
	return false, execute(c, "insert idempotency record",
		"INSERT OR REPLACE INTO answers (key_id, route, token, body_hash, answer, created_at) VALUES (?, ?, ?, ?, ?, ?)",
		idempotency.KeyID, idempotency.Route, idempotency.Token, idempotency.BodyHash[:], string(answer), idempotency.At.Milli())
}

// DropIdempotencyRecords implements [db.DB].
func (d *DB) DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop idempotency records",
		"DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE created_at < ? ORDER BY created_at LIMIT ?)", before, max)
}

// drop runs a DELETE whose parameters are a time and a limit.
func (d *DB) drop(ctx context.Context, doing, query string, before animalstore.Time, max int) (dropped int, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (dropped int, err error) {
		err = execute(c, doing, query, before.Milli(), max)
		return c.Changes(), err
	})
}
