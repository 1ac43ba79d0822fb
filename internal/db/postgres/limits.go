package postgres

import (
	"cmp"
	"context"
	"slices"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// LimitState implements [db.DB].
func (d *DB) LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error) {
	var s animalstore.LimitState
	err := d.readFor(ctx, db.LookupCallerOf(keyID), func(ctx context.Context, c *pgx.Conn) error {
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

// limitFields returns the fields of s in the order of limitColumns.
func limitFields(s *animalstore.LimitState) []any {
	return []any{
		&s.Minute.Used, &s.Minute.End, &s.Minute.Refused,
		&s.Day.Used, &s.Day.End, &s.Day.Refused,
		&s.Strikes, &s.StrikesSince,
		&s.BannedAt, &s.BannedUntil, &s.BanLevel,
	}
}

// saveLimits inserts by ascending key, as everything that locks several keys does.
const saveLimits = `INSERT INTO limit_states (key_id, ` + limitColumns + `)
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
		AS new (key_id, ` + limitColumns + `) ORDER BY key_id
	ON CONFLICT (key_id) DO UPDATE SET (` + limitColumns + `) = (excluded.minute_used, excluded.minute_end, excluded.minute_refused,
		excluded.day_used, excluded.day_end, excluded.day_refused, excluded.strikes, excluded.strikes_since,
		excluded.banned_at, excluded.banned_until, excluded.ban_level)
	WHERE excluded.banned_at > limit_states.banned_at OR excluded.banned_at = limit_states.banned_at AND
		(excluded.key_id = ANY($13::bigint[]) OR (excluded.day_end, excluded.day_used) >= (limit_states.day_end, limit_states.day_used))`

// older reports whether s is skipped if other is saved. It is the rule of saveLimits.
func older(s, other *animalstore.KeyLimitState) bool {
	if s.BannedAt != other.BannedAt {
		return s.BannedAt < other.BannedAt
	}
	return !s.DayShortened && cmp.Or(
		cmp.Compare(s.Day.End, other.Day.End),
		cmp.Compare(s.Day.Used, other.Day.Used)) < 0
}

// latestStates returns the state to save of each key. A key may appear twice in
// states, but a statement can't update a row twice.
func latestStates(states []animalstore.KeyLimitState) map[int64]animalstore.KeyLimitState {
	latest := make(map[int64]animalstore.KeyLimitState, len(states))
	for _, s := range states {
		before, found := latest[s.KeyID]
		if found && older(&s, &before) {
			continue
		}
		s.DayShortened = s.DayShortened || before.DayShortened && s.BannedAt == before.BannedAt
		latest[s.KeyID] = s
	}
	return latest
}

// SaveLimitStates implements [db.DB].
func (d *DB) SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error {
	latest := latestStates(states)
	if len(latest) == 0 {
		return ctx.Err()
	}
	columns := make([][]int64, 13)
	columns[12] = []int64{} // not NULL
	for id, s := range latest {
		columns[0] = append(columns[0], id)
		for i, field := range limitFields(&s.LimitState) {
			columns[i+1] = append(columns[i+1], *field.(*int64))
		}
		if s.DayShortened {
			columns[12] = append(columns[12], id)
		}
	}
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i]
	}
	if banned := bannedKeys(latest); len(banned) > 0 {
		return d.saveBans(ctx, latest, banned, args)
	}
	return d.writeStatement(ctx, "save limit states", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, saveLimits, args...)
		return err
	})
}

// bannedKeys returns the keys that are or were banned, by ascending id.
func bannedKeys(states map[int64]animalstore.KeyLimitState) (ids []int64) {
	for id, s := range states {
		if s.BannedAt != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// saveBans saves states with bans, and adds an event for each ban that wasn't saved
// before. Other servers that share the limits save the same bans, so it locks the keys
// before it looks.
func (d *DB) saveBans(ctx context.Context, states map[int64]animalstore.KeyLimitState, banned []int64, args []any) error {
	by := db.ActorOf(ctx)
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT FROM keys WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", banned); err != nil {
			return failed("lock keys", err)
		}
		rows, err := tx.Query(ctx, "SELECT key_id, banned_at FROM limit_states WHERE key_id = ANY ($1)", banned)
		if err != nil {
			return failed("select last bans", err)
		}
		saved, id, at := map[int64]int64{}, int64(0), int64(0)
		if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { saved[id] = at; return nil }); err != nil {
			return failed("select last bans", err)
		}
		if _, err := tx.Exec(ctx, saveLimits, args...); err != nil {
			return failed("save limit states", err)
		}
		for _, id := range banned {
			if states[id].BannedAt <= saved[id] {
				continue
			}
			if err := addBanEvent(ctx, tx, by, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// addBanEvent adds the event of a ban that was just saved, unless it was lifted before.
func addBanEvent(ctx context.Context, tx pgx.Tx, by db.Actor, keyID int64) error {
	key, err := selectOne(ctx, tx, "select key", scanKey, selectKey, keyID)
	if err != nil || key.Ban == (animalstore.Ban{}) {
		return err
	}
	_, err = tx.Exec(ctx, addEvents+"VALUES ($1, $2, $4, $5, $6, $3)",
		eventArgs(by, db.EventTypeIndex(animalstore.KeyBannedEvent), keyID, db.EventData(key))...)
	return failed("insert event", err)
}
