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

// writeOrReplay returns the result of write, or the stored result if there is an
// idempotency record. Write transactions run one at a time, so the first write can't be in
// progress.
func writeOrReplay[T any](c *sqlite.Conn, idempotency *db.Idempotency, write func() (T, error)) (r replayable[T], err error) {
	if idempotency == nil {
		r.result, err = write()
		return r, err
	}
	var hash []byte
	stored := ""
	err = selectEach(c, "select idempotency record", func(r row) error { return r.Scan(&hash, &stored) },
		"SELECT body_hash, result FROM idempotency_records WHERE key_id = ? AND operation = ? AND token = ? AND created_at > ?",
		idempotency.KeyID, idempotency.Operation, idempotency.Token, idempotency.ExpiredAt().Milli())
	if err != nil {
		return r, err
	}
	if hash != nil {
		r.replayed = true
		return r, idempotency.Replay(hash, stored, &r.result)
	}
	if r.result, err = write(); err != nil {
		return r, err
	}
	result, err := json.Marshal(&r.result)
	if err != nil {
		return r, err
	}
	return r, execute(c, "insert idempotency record",
		"INSERT OR REPLACE INTO idempotency_records (key_id, operation, token, body_hash, result, created_at) VALUES (?, ?, ?, ?, ?, ?)",
		idempotency.KeyID, idempotency.Operation, idempotency.Token, idempotency.BodyHash[:], string(result), idempotency.At.Milli())
}

// DropIdempotencyRecords implements [db.DB].
func (d *DB) DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop idempotency records",
		"DELETE FROM idempotency_records WHERE rowid IN (SELECT rowid FROM idempotency_records WHERE created_at < ? ORDER BY created_at LIMIT ?)", before, max)
}

// drop runs a DELETE whose parameters are a time and a limit.
func (d *DB) drop(ctx context.Context, doing, query string, before animalstore.Time, max int) (dropped int, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (dropped int, err error) {
		err = execute(c, doing, query, before.Milli(), max)
		return c.Changes(), err
	})
}
