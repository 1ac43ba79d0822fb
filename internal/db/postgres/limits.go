package postgres

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
)

// LimitState implements [db.DB].
func (d *DB) LimitState(ctx context.Context, keyID int64) (db.LimitState, error) {
	ctx = fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup, ID: keyID})
	s, err := readOne(ctx, d, "select limit state", db.ScanLimitState,
		"SELECT "+db.LimitColumns+" FROM limit_states WHERE key_id = $1", keyID)
	if errors.Is(err, db.ErrNotFound) {
		return s, nil
	}
	return s, err
}

// saveLimits inserts by ascending key, as everything that locks several keys does.
const saveLimits = `INSERT INTO limit_states (key_id, ` + db.LimitColumns + `)
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
		AS new (key_id, ` + db.LimitColumns + `) ORDER BY key_id
	ON CONFLICT (key_id) DO UPDATE SET (` + db.LimitColumns + `) = (excluded.minute_used, excluded.minute_end, excluded.minute_refused,
		excluded.day_used, excluded.day_end, excluded.day_refused, excluded.strikes, excluded.strikes_since,
		excluded.banned_at, excluded.banned_until, excluded.ban_level)
	WHERE excluded.banned_at > limit_states.banned_at OR excluded.banned_at = limit_states.banned_at AND
		(excluded.key_id = ANY($13::bigint[]) OR (excluded.day_end, excluded.day_used) >= (limit_states.day_end, limit_states.day_used))`

// SaveLimitStates implements [db.DB].
func (d *DB) SaveLimitStates(ctx context.Context, states []db.KeyLimitState) error {
	if len(states) == 0 {
		return ctx.Err()
	}
	columns := make([][]int64, 13)
	columns[12] = []int64{} // not NULL
	var banned []int64      // the keys that are or were banned
	for _, s := range states {
		columns[0] = append(columns[0], s.KeyID)
		for i, field := range db.LimitFields(&s.LimitState) {
			columns[i+1] = append(columns[i+1], *field)
		}
		if s.DayShortened {
			columns[12] = append(columns[12], s.KeyID)
		}
		if s.BannedAt != 0 {
			banned = append(banned, s.KeyID)
		}
	}
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i]
	}
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		saved, err := lockBans(ctx, tx, banned)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, saveLimits, args...); err != nil {
			return failed("save limit states", err)
		}
		for _, s := range states {
			if s.BannedAt > saved[s.KeyID] {
				if err := addBanEvent(ctx, tx, s.KeyID); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// lockBans returns when the saved bans of keys began. It locks the keys first: other
// servers that share the limits save the same bans.
func lockBans(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]int64, error) {
	saved := map[int64]int64{}
	if len(ids) == 0 {
		return saved, nil
	}
	if _, err := tx.Exec(ctx, lockKeys, ids); err != nil {
		return nil, failed("lock keys", err)
	}
	rows, err := tx.Query(ctx, "SELECT key_id, banned_at FROM limit_states WHERE key_id = ANY ($1)", ids)
	if err != nil {
		return nil, failed("select last bans", err)
	}
	var id, at int64
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error { saved[id] = at; return nil })
	return saved, failed("select last bans", err)
}

// addBanEvent adds the event of a ban that was just saved, unless it was lifted before.
func addBanEvent(ctx context.Context, tx pgx.Tx, keyID int64) error {
	key, err := selectOne(ctx, tx, "select key", db.ScanKey, selectKey, keyID)
	if err != nil || key.Ban == (animalstore.Ban{}) {
		return err
	}
	var batch pgx.Batch
	queueEvent(db.WithOrigin(ctx, db.Service), &batch, animalstore.KeyBannedEvent, keyID, db.EventData(key))
	return send(ctx, tx, "insert event", &batch)
}

// lockKeys locks keys by ascending id, as everything that locks several keys does, so
// that concurrent calls don't deadlock.
const lockKeys = "SELECT FROM keys WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"

// addUsage adds up first, because an hour may appear twice.
const addUsage = `INSERT INTO usage AS u (key_id, hour, admitted, refused)
	SELECT key_id, hour, sum(admitted), sum(refused) FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS more (key_id, hour, admitted, refused)
	GROUP BY key_id, hour
	ON CONFLICT (key_id, hour) DO UPDATE SET admitted = u.admitted + excluded.admitted, refused = u.refused + excluded.refused`

const rememberUse = `UPDATE keys SET last_used = greatest(last_used, used) FROM
	(SELECT id, max(used) FROM unnest($1::bigint[], $2::bigint[]) AS more (id, used) GROUP BY id) AS latest (id, used)
	WHERE keys.id = latest.id`

// SaveUsage implements [db.DB].
func (d *DB) SaveUsage(ctx context.Context, usage []db.KeyUsage) error {
	var ids, hours, admitted, refused, used []int64
	for _, u := range usage {
		ids, hours, admitted = append(ids, u.KeyID), append(hours, u.Hour.Milli()), append(admitted, u.Admitted)
		refused, used = append(refused, u.Refused), append(used, u.LastUsed.Milli())
	}
	if len(ids) == 0 {
		return ctx.Err()
	}
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockKeys, ids); err != nil {
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
	return list(ctx, d, "select usage", db.ScanUsage,
		"SELECT hour, admitted, refused FROM usage WHERE key_id = $1 AND hour >= $2 ORDER BY hour DESC", keyID, since.Milli())
}

// DropUsage implements [db.DB].
func (d *DB) DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop usage", `DELETE FROM usage WHERE (key_id, hour) IN (
		SELECT key_id, hour FROM usage WHERE hour < $1 ORDER BY hour LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, max)
}
