package postgres

import (
	"context"

	"animalstore"

	"github.com/jackc/pgx/v5"
)

// lockUsed locks the keys whose usage is saved, by ascending id, so that concurrent
// calls don't deadlock.
const lockUsed = "SELECT id FROM keys WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"

// addUsage adds up first, because an hour may appear twice.
const addUsage = `INSERT INTO usage AS u (key_id, hour, admitted, refused)
	SELECT key_id, hour, sum(admitted), sum(refused) FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS more (key_id, hour, admitted, refused)
	GROUP BY key_id, hour
	ON CONFLICT (key_id, hour) DO UPDATE SET admitted = u.admitted + excluded.admitted, refused = u.refused + excluded.refused`

const rememberUse = `UPDATE keys SET last_used = greatest(last_used, used) FROM
	(SELECT id, max(used) FROM unnest($1::bigint[], $2::bigint[]) AS more (id, used) GROUP BY id) AS latest (id, used)
	WHERE keys.id = latest.id`

// SaveUsage implements [db.DB].
func (d *DB) SaveUsage(ctx context.Context, usage []animalstore.Usage) error {
	var ids, hours, admitted, refused, used []int64
	for _, u := range usage {
		ids, hours, admitted = append(ids, u.KeyID), append(hours, u.Hour.Milli()), append(admitted, u.Admitted)
		refused, used = append(refused, u.Refused), append(used, u.LastUsed.Milli())
	}
	if len(ids) == 0 {
		return ctx.Err()
	}
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockUsed, ids); err != nil {
			return failed("lock keys", err)
		}
		if _, err := tx.Exec(ctx, addUsage, ids, hours, admitted, refused); err != nil {
			return failed("save usage", err)
		}
		_, err := tx.Exec(ctx, rememberUse, ids, used)
		return failed("save last use", err)
	})
}

// Usage implements [db.DB].
func (d *DB) Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	scan := func(row pgx.Row) (animalstore.Usage, error) {
		u := animalstore.Usage{KeyID: keyID}
		var hour int64
		err := row.Scan(&hour, &u.Admitted, &u.Refused)
		u.Hour = animalstore.AtMilli(hour)
		return u, err
	}
	hours := int(animalstore.UsageKept.Hours())
	return list(ctx, d, "select usage", hours, scan,
		"SELECT hour, admitted, refused FROM usage WHERE key_id = $1 AND hour >= $2 ORDER BY hour DESC", keyID, since.Milli())
}

// DropUsage implements [db.DB].
func (d *DB) DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop usage", `DELETE FROM usage WHERE (key_id, hour) IN (
		SELECT key_id, hour FROM usage WHERE hour < $1 ORDER BY hour LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, max)
}
