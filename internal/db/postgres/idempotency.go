package postgres

import (
	"context"
	"encoding/json"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// claimRecord inserts an idempotency record, or takes over one that has expired. It
// waits for another transaction that has claimed the record, and changes nothing if that
// one commits.
const claimRecord = `INSERT INTO idempotency_records AS record (key_id, operation, token, body_hash, result, created_at) VALUES ($1, $2, $3, $4, '', $5)
	ON CONFLICT (key_id, operation, token) DO UPDATE SET body_hash = excluded.body_hash, result = '', created_at = excluded.created_at
	WHERE record.created_at <= $6`

// writeOrReplay runs write, which sets result, unless there is an idempotency record
// of it: then it sets result to the stored one.
func writeOrReplay(ctx context.Context, tx pgx.Tx, idempotency *db.Idempotency, result any, write func() error) (replayed bool, err error) {
	if idempotency == nil {
		return false, write()
	}
	claimed, err := tx.Exec(ctx, claimRecord, idempotency.KeyID, idempotency.Operation, idempotency.Token, idempotency.BodyHash[:], idempotency.At.Milli(), idempotency.ExpiredAt().Milli())
	if err != nil {
		return false, failed("claim idempotency record", err)
	}
	if claimed.RowsAffected() == 0 {
		err := replay(ctx, tx, idempotency, result)
		return err == nil, err
	}
	if err := write(); err != nil {
		return false, err
	}
	stored, err := json.Marshal(result)
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, "UPDATE idempotency_records SET result = $4 WHERE key_id = $1 AND operation = $2 AND token = $3", idempotency.KeyID, idempotency.Operation, idempotency.Token, string(stored))
	return false, failed("store idempotency record", err)
}

// replay reads the result that an earlier write stored.
func replay(ctx context.Context, tx pgx.Tx, idempotency *db.Idempotency, result any) error {
	var hash []byte
	var stored string
	err := tx.QueryRow(ctx, "SELECT body_hash, result FROM idempotency_records WHERE key_id = $1 AND operation = $2 AND token = $3",
		idempotency.KeyID, idempotency.Operation, idempotency.Token).Scan(&hash, &stored)
	if err != nil {
		return failed("select idempotency record", err)
	}
	return idempotency.Replay(hash, stored, result)
}

// dropRecords skips the records that another server is deleting.
const dropRecords = `DELETE FROM idempotency_records WHERE (key_id, operation, token) IN (
	SELECT key_id, operation, token FROM idempotency_records WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`

// DropIdempotencyRecords implements [db.DB].
func (d *DB) DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop idempotency records", dropRecords, before, max)
}

// drop runs a DELETE whose parameters are a time and a limit.
func (d *DB) drop(ctx context.Context, doing, query string, before animalstore.Time, max int) (dropped int, err error) {
	err = d.writeStatement(ctx, doing, func(ctx context.Context, c *pgx.Conn) error {
		tag, err := c.Exec(ctx, query, before.Milli(), max)
		dropped = int(tag.RowsAffected())
		return err
	})
	return dropped, err
}
