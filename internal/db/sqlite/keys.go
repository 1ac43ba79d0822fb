package sqlite

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
)

// Queries that search by secret are for authentication, which doesn't need the ban.
const (
	selectKeys = "SELECT " + db.KeyColumns + `,
		COALESCE((SELECT banned_until FROM limit_states WHERE key_id = keys.id AND banned_at > unbanned_at), 0),
		COALESCE((SELECT ban_level FROM limit_states WHERE key_id = keys.id AND banned_at > unbanned_at), 0), 0 FROM keys `
	selectKey      = selectKeys + "WHERE id = ?"
	keyByHashQuery = "SELECT " + db.KeyColumns + ", 0, 0, key_secrets.expires_at FROM key_secrets JOIN keys ON keys.id = key_id WHERE hash = ?"
)

// CreateKey implements [db.DB].
func (d *DB) CreateKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (animalstore.Key, error) {
		return insertKey(c, by, k, hash, at)
	})
}

// CreateFirstKey implements [db.DB].
func (d *DB) CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (created bool, err error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (created bool, err error) {
		if exists, err := selectInt(c, "select keys", "SELECT EXISTS (SELECT 1 FROM keys)"); err != nil || exists != 0 {
			return false, err
		}
		_, err = insertKey(c, by, k, hash, at)
		return true, err
	})
}

func insertKey(c *sqlite.Conn, by db.Origin, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	err := execute(c, "insert key", `INSERT INTO keys (name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, networks, last_used, revoked_at, unbanned_at, suspended_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0)`,
		k.Name, string(k.Plan), k.Limits.PerMinute, k.Limits.PerDay, int64(k.Permissions), string(k.Environment), at.Milli(), k.ExpiresAt.Milli(), string(k.Networks))
	if err != nil {
		return animalstore.Key{}, err
	}
	id := c.LastInsertRowID()
	if err := insertSecret(c, id, hash); err != nil {
		return animalstore.Key{}, err
	}
	key, err := keyByID(c, id)
	if err != nil {
		return key, err
	}
	return key, insertEvent(c, by, animalstore.KeyCreated, id, db.KeyEventData(key, at))
}

func insertSecret(c *sqlite.Conn, keyID int64, hash db.KeyHash) error {
	err := execute(c, "insert key secret", "INSERT INTO key_secrets (hash, key_id, expires_at) VALUES (?, ?, 0)", hash[:], keyID)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint {
		return db.ErrExists
	}
	return err
}

// KeyByHash implements [db.DB].
func (d *DB) KeyByHash(ctx context.Context, hash db.KeyHash) (key animalstore.Key, found bool, err error) {
	ctx = fair.WithCaller(ctx, fair.LookupByHash(hash))
	key, err = readOne(ctx, d, "select key", db.ScanKey, keyByHashQuery, hash[:])
	if errors.Is(err, db.ErrNotFound) {
		return key, false, nil
	}
	return key, err == nil, err
}

// KeysByHash implements [db.DB].
func (d *DB) KeysByHash(ctx context.Context, hashes []db.KeyHash) (found map[db.KeyHash]animalstore.Key, err error) {
	err = d.read(fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup}), func(c *sqlite.Conn) error {
		found = make(map[db.KeyHash]animalstore.Key, len(hashes))
		for _, hash := range hashes {
			key, err := selectOne(c, "select key", db.ScanKey, keyByHashQuery, hash[:])
			if err == nil {
				found[hash] = key
			} else if !errors.Is(err, db.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	return found, err
}

// KeyNames implements [db.DB].
func (d *DB) KeyNames(ctx context.Context, ids []int64) (names map[int64]string, err error) {
	names = make(map[int64]string, len(ids))
	err = d.read(ctx, func(c *sqlite.Conn) error {
		return selectEach(c, "select names of keys", func(r row) error {
			names[r.ColumnInt64(0)] = r.ColumnText(1)
			return nil
		}, "SELECT id, name FROM keys WHERE id IN (SELECT value FROM json_each(?))", ids)
	})
	return names, err
}

// KeysVersion implements [db.DB].
func (d *DB) KeysVersion(ctx context.Context) (string, error) {
	return readOne(fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup}), d, "select version of keys",
		db.ScanValue[string], "SELECT version FROM keys_version")
}

// Key implements [db.DB].
func (d *DB) Key(ctx context.Context, id int64) (animalstore.Key, error) {
	return readOne(ctx, d, "select key", db.ScanKey, selectKey, id)
}

// Keys implements [db.DB].
func (d *DB) Keys(ctx context.Context, page db.Page) ([]animalstore.Key, error) {
	return list(ctx, d, "select keys", db.ScanKey, selectKeys+"WHERE id < ? ORDER BY id DESC LIMIT +?",
		db.UpperBound(page.After), page.Limit)
}

const deleteSessions = "DELETE FROM console_sessions WHERE secret IN (SELECT hash FROM key_secrets WHERE key_id = ?)"

// UpdateKey implements [db.DB].
func (d *DB) UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(*animalstore.Key, bool) error) (animalstore.Key, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (key animalstore.Key, err error) {
		if key, err = keyByID(c, id); err != nil {
			return key, err
		}
		before := key
		otherAdmin, err := otherAdminExists(c, key, at)
		if err != nil {
			return key, err
		}
		if err := change(&key, otherAdmin); err != nil {
			return key, err
		}
		err = execute(c, "update key", `UPDATE keys SET name = ?, plan = ?, per_minute = ?, per_day = ?, permissions = ?, expires_at = ?, revoked_at = ?, unbanned_at = ?,
			suspended_at = ?, networks = ? WHERE id = ?`, key.Name, string(key.Plan), key.Limits.PerMinute, key.Limits.PerDay, int64(key.Permissions),
			key.ExpiresAt.Milli(), key.RevokedAt.Milli(), key.UnbannedAt.Milli(), key.SuspendedAt.Milli(), string(key.Networks), id)
		if err != nil {
			return key, err
		}
		if db.SuspendedNow(&before, &key) {
			if err := execute(c, "delete sessions", deleteSessions, id); err != nil {
				return key, err
			}
		}
		if t, changed := db.KeyChange(before, key, at); changed {
			return key, insertEvent(c, by, t, id, db.KeyEventData(key, at))
		}
		return key, nil
	})
}

func otherAdminExists(c *sqlite.Conn, key animalstore.Key, at animalstore.Time) (bool, error) {
	found, err := selectInt(c, "select other key", `SELECT EXISTS (SELECT 1 FROM keys WHERE id <> ? AND environment = ? AND permissions & 4 <> 0
		AND revoked_at = 0 AND suspended_at = 0 AND (expires_at = 0 OR expires_at > ?))`, key.ID, string(key.Environment), at.Milli())
	return found != 0, err
}

// RotateKey implements [db.DB].
func (d *DB) RotateKey(ctx context.Context, id int64, r db.KeyRotation, check func(*animalstore.Key) error) (animalstore.Key, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (key animalstore.Key, err error) {
		if key, err = keyByID(c, id); err != nil {
			return key, err
		}
		if err := db.CheckRotation(&key, check); err != nil {
			return key, err
		}
		err = execute(c, "end key secrets", "UPDATE key_secrets SET expires_at = ?1 WHERE key_id = ?2 AND (expires_at = 0 OR expires_at > ?1)", r.OldUntil.Milli(), id)
		if err != nil {
			return key, err
		}
		err = execute(c, "delete key secrets", "DELETE FROM key_secrets WHERE key_id = ? AND expires_at <> 0 AND expires_at <= ?", id, r.At.Milli())
		if err != nil {
			return key, err
		}
		if err := insertSecret(c, id, r.Hash); err != nil {
			return key, err
		}
		return key, insertEvent(c, by, animalstore.KeyRotated, id, db.KeyEventData(key, r.At))
	})
}

func keyByID(c *sqlite.Conn, id int64) (animalstore.Key, error) {
	return selectOne(c, "select key", db.ScanKey, selectKey, id)
}
