package sqlite

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
)

// LimitState implements [db.DB].
func (d *DB) LimitState(ctx context.Context, keyID int64) (db.LimitState, error) {
	ctx = fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup, ID: keyID})
	s, err := readOne(ctx, d, "select limit state", db.ScanLimitState,
		"SELECT "+db.LimitColumns+" FROM limit_states WHERE key_id = ?", keyID)
	if errors.Is(err, db.ErrNotFound) {
		return s, nil
	}
	return s, err
}

const saveLimitState = `
	INSERT INTO limit_states (key_id, ` + db.LimitColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (key_id) DO UPDATE SET (` + db.LimitColumns + `) = (excluded.minute_used, excluded.minute_end, excluded.minute_refused,
		excluded.day_used, excluded.day_end, excluded.day_refused, excluded.strikes, excluded.strikes_since,
		excluded.banned_at, excluded.banned_until, excluded.ban_level)
	WHERE excluded.banned_at > limit_states.banned_at OR excluded.banned_at = limit_states.banned_at AND
		(?13 OR (excluded.day_end, excluded.day_used) >= (limit_states.day_end, limit_states.day_used))`

// SaveLimitStates implements [db.DB].
func (d *DB) SaveLimitStates(ctx context.Context, states []db.KeyLimitState) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		for i := range states {
			id, banned := states[i].KeyID, false
			if states[i].BannedAt != 0 {
				before, err := lastBan(c, id)
				if err != nil {
					return err
				}
				banned = states[i].BannedAt > before
			}
			args := []any{id}
			for _, field := range db.LimitFields(&states[i].LimitState) {
				args = append(args, *field)
			}
			if err := execute(c, "save limit states", saveLimitState, append(args, states[i].DayShortened)...); err != nil {
				return err
			}
			if banned {
				if err := addBanEvent(c, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// lastBan returns when the saved ban of a key began, or 0.
func lastBan(c *sqlite.Conn, keyID int64) (bannedAt int64, err error) {
	return selectInt(c, "select last ban", "SELECT banned_at FROM limit_states WHERE key_id = ?", keyID)
}

// addBanEvent adds the event of a ban that was just saved, unless it was lifted before.
func addBanEvent(c *sqlite.Conn, keyID int64) error {
	key, err := keyByID(c, keyID)
	if err != nil || key.Ban == (animalstore.Ban{}) {
		return err
	}
	return insertEvent(c, db.Service, animalstore.KeyBannedEvent, key.ID, db.EventData(key))
}

// SaveUsage implements [db.DB].
func (d *DB) SaveUsage(ctx context.Context, usage []db.KeyUsage) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		for i := range usage {
			u := &usage[i]
			if err := addUsage(c, u.KeyID, u.Hour.Milli(), u.Admitted, u.Refused); err != nil {
				return err
			}
			err := execute(c, "save last use", "UPDATE keys SET last_used = ?2 WHERE id = ?1 AND last_used < ?2", u.KeyID, u.LastUsed.Milli())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addUsage adds to the row of a key's hour. There nearly always is one, and an INSERT that
// updates it instead takes longer, because it checks first whether the key exists.
func addUsage(c *sqlite.Conn, row ...any) error {
	err := execute(c, "save usage", "UPDATE usage SET admitted = admitted + ?3, refused = refused + ?4 WHERE key_id = ?1 AND hour = ?2", row...)
	if err != nil || c.Changes() > 0 {
		return err
	}
	return execute(c, "save usage", "INSERT INTO usage (key_id, hour, admitted, refused) VALUES (?, ?, ?, ?)", row...)
}

// Usage implements [db.DB].
func (d *DB) Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	return list(ctx, d, "select usage", db.ScanUsage,
		"SELECT hour, admitted, refused FROM usage WHERE key_id = ? AND hour >= ? ORDER BY hour DESC", keyID, since.Milli())
}

// DropUsage implements [db.DB].
func (d *DB) DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop usage",
		"DELETE FROM usage WHERE (key_id, hour) IN (SELECT key_id, hour FROM usage WHERE hour < ? LIMIT ?)", before, max)
}
