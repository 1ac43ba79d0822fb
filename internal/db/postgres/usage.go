package postgres

import (
	"context"
	"fmt"

	"animalstore"

	"github.com/jackc/pgx/v5"
)

// lockUsed locks the keys whose usage is saved, in the order in which all lock
// keys, so that two that save at once do not wait for each other.
const lockUsed = "SELECT id FROM keys WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"

// addUsage sums up, because an hour may come twice.
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

// LimitState implements [db.DB].
func (d *DB) LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error) {
	var s animalstore.LimitState
	err := d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT "+limitColumns+" FROM limit_states WHERE key_id = $1", keyID)
		if err != nil {
			return failed("select limit state", err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(limitFields(&s)...); err != nil {
				return failed("select limit state", err)
			}
		}
		return failed("select limit state", rows.Err())
	})
	return s, err
}

const limitColumns = "minute_used, minute_end, minute_refused, day_used, day_end, day_refused, strikes, strikes_since, banned_at, banned_until, ban_level"

// limitFields are the fields of s in the order of limitColumns.
func limitFields(s *animalstore.LimitState) []any {
	return []any{
		&s.Minute.Used, &s.Minute.End, &s.Minute.Refused,
		&s.Day.Used, &s.Day.End, &s.Day.Refused,
		&s.Strikes, &s.StrikesSince,
		&s.BannedAt, &s.BannedUntil, &s.BanLevel,
	}
}

// saveLimits inserts by ascending key, like all who lock several.
const saveLimits = `INSERT INTO limit_states (key_id, ` + limitColumns + `)
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
		AS new (key_id, ` + limitColumns + `) ORDER BY key_id
	ON CONFLICT (key_id) DO UPDATE SET (` + limitColumns + `) = (excluded.minute_used, excluded.minute_end, excluded.minute_refused,
		excluded.day_used, excluded.day_end, excluded.day_refused, excluded.strikes, excluded.strikes_since,
		excluded.banned_at, excluded.banned_until, excluded.ban_level)
	WHERE (excluded.banned_at, excluded.day_end, excluded.day_used) >= (limit_states.banned_at, limit_states.day_end, limit_states.day_used)`

// SaveLimitStates implements [db.DB].
func (d *DB) SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error {
	latest := make(map[int64]*animalstore.LimitState, len(states)) // a key may come twice
	for i := range states {
		latest[states[i].KeyID] = &states[i].LimitState
	}
	if len(latest) == 0 {
		return ctx.Err()
	}
	columns := make([][]int64, 12)
	for id, s := range latest {
		columns[0] = append(columns[0], id)
		for i, field := range limitFields(s) {
			columns[i+1] = append(columns[i+1], *field.(*int64))
		}
	}
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i]
	}
	return d.writeAlone(ctx, fmt.Sprintf("save limits of %d keys", len(latest)), func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, saveLimits, args...)
		return err
	})
}
