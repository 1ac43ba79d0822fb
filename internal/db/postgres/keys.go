package postgres

import (
	"context"
	"errors"
	"slices"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
)

// Queries that search by secret are for authentication, which doesn't need the ban.
const (
	keyColumns = db.KeyColumns + `,
		COALESCE((SELECT banned_until FROM limit_states WHERE key_id = keys.id AND banned_at > unbanned_at), 0),
		COALESCE((SELECT ban_level FROM limit_states WHERE key_id = keys.id AND banned_at > unbanned_at), 0), 0::bigint`
	keyByHashQuery = "SELECT " + db.KeyColumns + ", 0::bigint, 0::bigint, key_secrets.expires_at FROM key_secrets JOIN keys ON keys.id = key_id WHERE hash = $1"
)

// CreateKey implements [db.DB].
func (d *DB) CreateKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	var key animalstore.Key
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		key, err = insertKey(ctx, tx, k, hash, at)
		return err
	})
	return key, err
}

// CreateFirstKey implements [db.DB].
func (d *DB) CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (created bool, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		created = false
		if err := firstKeyLock.take(ctx, tx); err != nil {
			return err
		}
		exists, err := selectOne(ctx, tx, "select keys", db.ScanValue[bool], "SELECT EXISTS (SELECT FROM keys)")
		if exists || err != nil {
			return err
		}
		created = true
		_, err = insertKey(ctx, tx, k, hash, at)
		return err
	})
	return created && err == nil, err
}

func insertKey(ctx context.Context, tx pgx.Tx, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	key, err := db.ScanKey(tx.QueryRow(ctx, `INSERT INTO keys (name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, networks, last_used, revoked_at, unbanned_at, suspended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, 0) RETURNING `+keyColumns,
		k.Name, string(k.Plan), k.Limits.PerMinute, k.Limits.PerDay, int64(k.Permissions), string(k.Environment), at.Milli(), k.ExpiresAt.Milli(), string(k.Networks)))
	if err != nil {
		return key, failed("insert key", err)
	}
	return key, insertSecret(ctx, tx, hash, key, animalstore.KeyCreated, at)
}

// insertSecret adds a secret of a key, and an event of the key.
func insertSecret(ctx context.Context, tx pgx.Tx, hash db.KeyHash, key animalstore.Key, t animalstore.EventType, at animalstore.Time) error {
	var batch pgx.Batch
	batch.Queue("INSERT INTO key_secrets (hash, key_id, expires_at) VALUES ($1, $2, 0)", hash[:], key.ID)
	queueEvent(ctx, &batch, t, key.ID, db.KeyEventData(key, at))
	err := send(ctx, tx, "insert key secret", &batch)
	if hasCode(err, uniqueViolation) {
		return db.ErrExists
	}
	return err
}

// KeyByHash implements [db.DB].
func (d *DB) KeyByHash(ctx context.Context, hash db.KeyHash) (key animalstore.Key, found bool, err error) {
	key, err = readOne(fair.WithCaller(ctx, fair.LookupByHash(hash)), d, "select key", db.ScanKey, keyByHashQuery, hash[:])
	if errors.Is(err, db.ErrNotFound) {
		return key, false, nil
	}
	return key, err == nil, err
}

// KeysByHash implements [db.DB], with one round trip.
func (d *DB) KeysByHash(ctx context.Context, hashes []db.KeyHash) (found map[db.KeyHash]animalstore.Key, err error) {
	err = d.read(fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup}), func(ctx context.Context, c *pgx.Conn) error {
		found = make(map[db.KeyHash]animalstore.Key, len(hashes))
		var batch pgx.Batch
		for _, hash := range hashes {
			batch.Queue(keyByHashQuery, hash[:]).QueryRow(func(row pgx.Row) error {
				key, err := db.ScanKey(row)
				if err == nil {
					found[hash] = key
				}
				return ignoreNoRows(err)
			})
		}
		return failed("select keys", c.SendBatch(ctx, &batch).Close())
	})
	return found, err
}

// KeyNames implements [db.DB].
func (d *DB) KeyNames(ctx context.Context, ids []int64) (names map[int64]string, err error) {
	names = make(map[int64]string, len(ids))
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT id, name FROM keys WHERE id = ANY ($1)", ids)
		if err != nil {
			return failed("select names of keys", err)
		}
		var id int64
		var name string
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error { names[id] = name; return nil })
		return failed("select names of keys", err)
	})
	return names, err
}

// KeysVersion implements [db.DB].
func (d *DB) KeysVersion(ctx context.Context) (version string, err error) {
	return readOne(fair.WithCaller(ctx, fair.Caller{Kind: fair.Lookup}), d, "select version of keys",
		db.ScanValue[string], "SELECT version FROM keys_version")
}

const selectKey = "SELECT " + keyColumns + " FROM keys WHERE id = $1"

// Key implements [db.DB].
func (d *DB) Key(ctx context.Context, id int64) (animalstore.Key, error) {
	return readOne(ctx, d, "select key", db.ScanKey, selectKey, id)
}

// Keys implements [db.DB].
func (d *DB) Keys(ctx context.Context, page db.Page) ([]animalstore.Key, error) {
	return list(ctx, d, "select keys", db.ScanKey,
		"SELECT "+keyColumns+" FROM keys WHERE id < $1 ORDER BY id DESC LIMIT $2", db.UpperBound(page.After), page.Limit)
}

// lockAdmins locks and returns a key and all others of its environment that can manage
// keys. Everything that locks several keys does so by ascending id, to avoid deadlocks.
// A statement that waited for a lock returns the changed row, so the caller has to check
// the permissions again.
const lockAdmins = "SELECT " + keyColumns + ` FROM keys WHERE id = ANY (ARRAY(
		SELECT $1 UNION SELECT other.id FROM keys one JOIN keys other ON other.environment = one.environment
		WHERE one.id = $1 AND other.permissions & 4 <> 0 AND other.revoked_at = 0))
	ORDER BY id FOR NO KEY UPDATE`

// UpdateKey implements [db.DB].
func (d *DB) UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(*animalstore.Key, bool) error) (animalstore.Key, error) {
	var key animalstore.Key
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		locked, err := selectAll(ctx, tx, "lock keys", db.ScanKey, lockAdmins, id)
		if err != nil {
			return err
		}
		otherAdmin := slices.ContainsFunc(locked, func(k animalstore.Key) bool { return k.ID != id && k.Manages(at.Time) })
		if key, err = selectLocked(ctx, tx, id); err != nil {
			return err
		}
		before := key
		if err := change(&key, otherAdmin); err != nil {
			return err
		}
		return storeKey(ctx, tx, &before, &key, at)
	})
	return key, err
}

// selectLocked returns a key that is locked. A statement that waits for a lock sees the
// current state of the locked row, but a ban, which is in another table, as of its start.
func selectLocked(ctx context.Context, tx pgx.Tx, id int64) (animalstore.Key, error) {
	return selectOne(ctx, tx, "select key", db.ScanKey, selectKey, id)
}

// storeKey stores a changed key, and the event if the change shows.
func storeKey(ctx context.Context, tx pgx.Tx, before, key *animalstore.Key, at animalstore.Time) error {
	var batch pgx.Batch
	batch.Queue(`UPDATE keys SET name = $2, plan = $3, per_minute = $4, per_day = $5, permissions = $6, expires_at = $7, revoked_at = $8, unbanned_at = $9,
		suspended_at = $10, networks = $11 WHERE id = $1`, key.ID, key.Name, string(key.Plan), key.Limits.PerMinute, key.Limits.PerDay, int64(key.Permissions),
		key.ExpiresAt.Milli(), key.RevokedAt.Milli(), key.UnbannedAt.Milli(), key.SuspendedAt.Milli(), string(key.Networks))
	if db.SuspendedNow(before, key) {
		batch.Queue("DELETE FROM console_sessions WHERE secret IN (SELECT hash FROM key_secrets WHERE key_id = $1)", key.ID)
	}
	if t, changed := db.KeyChange(*before, *key, at); changed {
		queueEvent(ctx, &batch, t, key.ID, db.KeyEventData(*key, at))
	}
	return send(ctx, tx, "update key", &batch)
}

// RotateKey implements [db.DB].
func (d *DB) RotateKey(ctx context.Context, id int64, r db.KeyRotation, check func(*animalstore.Key) error) (animalstore.Key, error) {
	var key animalstore.Key
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err = lockOne(ctx, tx, "lock key", db.ScanKey, selectKey, id); err != nil {
			return err
		}
		if key, err = selectLocked(ctx, tx, id); err != nil {
			return err
		}
		if err := db.CheckRotation(&key, check); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE key_secrets SET expires_at = $1 WHERE key_id = $2 AND (expires_at = 0 OR expires_at > $1)", r.OldUntil.Milli(), id)
		if err != nil {
			return failed("end key secrets", err)
		}
		_, err = tx.Exec(ctx, "DELETE FROM key_secrets WHERE key_id = $1 AND expires_at <> 0 AND expires_at <= $2", id, r.At.Milli())
		if err != nil {
			return failed("delete key secrets", err)
		}
		return insertSecret(ctx, tx, r.Hash, key, animalstore.KeyRotated, r.At)
	})
	return key, err
}
