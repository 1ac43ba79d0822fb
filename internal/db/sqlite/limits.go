package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// LimitState implements [db.DB].
func (d *DB) LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error) {
	var s animalstore.LimitState
	err := d.readFor(ctx, db.LookupCallerOf(keyID), func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, "SELECT * FROM limit_states WHERE key_id = ?", &sqlitex.ExecOptions{
			Args: []any{keyID},
			ResultFunc: func(stmt *sqlite.Stmt) error {
				for i, field := range limitFields(&s) {
					*field = stmt.ColumnInt64(i + 1)
				}
				return nil
			},
		})
		if err != nil {
			return fmt.Errorf("select limit state: %w", err)
		}
		return nil
	})
	return s, err
}

const saveLimitState = `
	INSERT INTO limit_states VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (key_id) DO UPDATE SET
		minute_used = excluded.minute_used, minute_end = excluded.minute_end, minute_refused = excluded.minute_refused,
		day_used = excluded.day_used, day_end = excluded.day_end, day_refused = excluded.day_refused,
		strikes = excluded.strikes, strikes_since = excluded.strikes_since,
		banned_at = excluded.banned_at, banned_until = excluded.banned_until, ban_level = excluded.ban_level
	WHERE excluded.banned_at > limit_states.banned_at OR excluded.banned_at = limit_states.banned_at AND
		(?13 OR (excluded.day_end, excluded.day_used) >= (limit_states.day_end, limit_states.day_used))`

// SaveLimitStates implements [db.DB].
func (d *DB) SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error {
	by := db.ActorOf(ctx)
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare(saveLimitState)
		if err != nil {
			return fmt.Errorf("save limit states: %w", err)
		}
		before := map[int64]int64{} // when the last ban of each banned key began
		for i := range states {
			id := states[i].KeyID
			if _, found := before[id]; !found && states[i].BannedAt != 0 {
				if before[id], err = lastBan(c, id); err != nil {
					return err
				}
			}
			stmt.BindInt64(1, id)
			for j, field := range limitFields(&states[i].LimitState) {
				stmt.BindInt64(j+2, *field)
			}
			stmt.BindBool(13, states[i].DayShortened)
			if _, err := stmt.Step(); err != nil {
				return fmt.Errorf("save limit states: %w", err)
			}
			if err := stmt.Reset(); err != nil {
				return fmt.Errorf("save limit states: %w", err)
			}
		}
		// A key may appear twice in states, but it changed once.
		for _, id := range slices.Sorted(maps.Keys(before)) {
			if err := addBanEvent(c, by, id, before[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastBan returns when the saved ban of a key began, or 0.
func lastBan(c *sqlite.Conn, keyID int64) (bannedAt int64, err error) {
	err = sqlitex.Execute(c, "SELECT banned_at FROM limit_states WHERE key_id = ?", &sqlitex.ExecOptions{
		Args:       []any{keyID},
		ResultFunc: func(stmt *sqlite.Stmt) error { bannedAt = stmt.ColumnInt64(0); return nil },
	})
	if err != nil {
		return 0, fmt.Errorf("select last ban: %w", err)
	}
	return bannedAt, nil
}

// addBanEvent adds the event of a ban that was just saved, if it began after the one
// saved before and wasn't lifted meanwhile.
func addBanEvent(c *sqlite.Conn, by db.Actor, keyID, before int64) error {
	if now, err := lastBan(c, keyID); err != nil || now <= before {
		return err
	}
	key, err := keyByID(c, keyID)
	if err != nil || key.Ban == (animalstore.Ban{}) {
		return err
	}
	return insertEvent(c, by, animalstore.KeyBannedEvent, key.ID, db.EventData(key))
}

// limitFields returns the fields of s in the order of the table's columns.
func limitFields(s *animalstore.LimitState) [11]*int64 {
	return [...]*int64{
		&s.Minute.Used, &s.Minute.End, &s.Minute.Refused,
		&s.Day.Used, &s.Day.End, &s.Day.Refused,
		&s.Strikes, &s.StrikesSince,
		&s.BannedAt, &s.BannedUntil, &s.BanLevel,
	}
}
