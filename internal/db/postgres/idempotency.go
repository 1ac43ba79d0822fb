package postgres

import (
	"bytes"
	"context"
	"encoding/json"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// claimAnswer inserts the row that an answer will be stored in, or takes over one
// that is too old to count. It waits for another transaction that has claimed
// the row, and touches nothing where that one committed.
const claimAnswer = `INSERT INTO answers AS a (key_id, route, token, body_hash, answer, created_at) VALUES ($1, $2, $3, $4, '', $5)
	ON CONFLICT (key_id, route, token) DO UPDATE SET body_hash = excluded.body_hash, answer = '', created_at = excluded.created_at
	WHERE a.created_at <= $6`

// doOnce runs write, which sets result, unless the same write was done before:
// then it sets result to what that one stored.
func doOnce(ctx context.Context, tx pgx.Tx, once *db.Idempotency, result any, write func() error) (replayed bool, err error) {
	if once == nil {
		return false, write()
	}
	claimed, err := tx.Exec(ctx, claimAnswer, once.KeyID, once.Route, once.Token, once.BodyHash[:], once.At.Milli(), once.At.Add(-db.IdempotencyWindow).UnixMilli())
	if err != nil {
		return false, failed("claim answer", err)
	}
	if claimed.RowsAffected() == 0 {
		err := replay(ctx, tx, once, result)
		return err == nil, err
	}
	if err := write(); err != nil {
		return false, err
	}
	answer, err := json.Marshal(result)
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, "UPDATE answers SET answer = $4 WHERE key_id = $1 AND route = $2 AND token = $3", once.KeyID, once.Route, once.Token, string(answer))
	return false, failed("store answer", err)
}

// replay reads the answer that another write stored.
func replay(ctx context.Context, tx pgx.Tx, once *db.Idempotency, result any) error {
	var hash []byte
	var answer string
	err := tx.QueryRow(ctx, "SELECT body_hash, answer FROM answers WHERE key_id = $1 AND route = $2 AND token = $3",
		once.KeyID, once.Route, once.Token).Scan(&hash, &answer)
	if err != nil {
		return failed("select answer", err)
	}
	if !bytes.Equal(hash, once.BodyHash[:]) {
		return animalstore.Errorf(animalstore.IdempotencyKeyReused, "Idempotency-Key was used for another body: send a new key with a new request, or the same body to retry")
	}
	return json.Unmarshal([]byte(answer), result)
}

// dropAnswers leaves alone what another program is dropping just now.
const dropAnswers = `DELETE FROM answers WHERE (key_id, route, token) IN (
	SELECT key_id, route, token FROM answers WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`

// DropIdempotencyRecords implements [db.DB].
func (d *DB) DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop answers", dropAnswers, before, max)
}

func (d *DB) drop(ctx context.Context, doing, query string, before animalstore.Time, max int) (dropped int, err error) {
	err = d.writeAlone(ctx, doing, func(ctx context.Context, c *pgx.Conn) error {
		tag, err := c.Exec(ctx, query, before.Milli(), max)
		dropped = int(tag.RowsAffected())
		return err
	})
	return dropped, err
}
