package sqlite

import (
	"context"
	"errors"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const keyColumns = "keys.id, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, revoked_at"

// CreateKey implements [db.DB].
func (d *DB) CreateKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	var key animalstore.Key
	err := d.writer.do(ctx, func(c *sqlite.Conn) (err error) {
		key, err = insertKey(c, k, hash, at)
		return err
	})
	return key, err
}

// CreateFirstKey implements [db.DB].
func (d *DB) CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (created bool, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		created = false
		switch _, err := oneKey(c, "SELECT "+keyColumns+" FROM keys LIMIT 1"); {
		case err == nil:
			return nil
		case !errors.Is(err, db.ErrNotFound):
			return err
		}
		created = true
		_, err := insertKey(c, k, hash, at)
		return err
	})
	return created && err == nil, err
}

func insertKey(c *sqlite.Conn, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	err := sqlitex.Execute(c, `INSERT INTO keys (name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, revoked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`, &sqlitex.ExecOptions{Args: []any{
		k.Name, string(k.Plan), k.Limits.PerMinute, k.Limits.PerDay, int64(k.Permissions), string(k.Environment), at.Milli(), k.ExpiresAt.Milli(),
	}})
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("insert key: %w", err)
	}
	id := c.LastInsertRowID()
	err = sqlitex.Execute(c, "INSERT INTO key_secrets (hash, key_id) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{hash[:], id}})
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("insert key secret: %w", err)
	}
	return keyByID(c, id)
}

// KeyByHash implements [db.DB].
func (d *DB) KeyByHash(ctx context.Context, hash db.KeyHash) (key animalstore.Key, found bool, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		key, err = oneKey(c, "SELECT "+keyColumns+" FROM key_secrets JOIN keys ON keys.id = key_id WHERE hash = ?", hash[:])
		return err
	})
	if errors.Is(err, db.ErrNotFound) {
		return key, false, nil
	}
	return key, err == nil, err
}

// Keys implements [db.DB].
func (d *DB) Keys(ctx context.Context) ([]animalstore.Key, error) {
	keys := []animalstore.Key{}
	err := d.read(ctx, func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "SELECT "+keyColumns+" FROM keys ORDER BY id", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error {
				keys = append(keys, scanKey(stmt))
				return nil
			},
		})
	})
	return keys, err
}

// RevokeKey implements [db.DB].
func (d *DB) RevokeKey(ctx context.Context, id int64, at animalstore.Time) (animalstore.Key, error) {
	var key animalstore.Key
	err := d.writer.do(ctx, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at = 0",
			&sqlitex.ExecOptions{Args: []any{at.Milli(), id}})
		if err != nil {
			return fmt.Errorf("revoke key: %w", err)
		}
		key, err = keyByID(c, id)
		return err
	})
	return key, err
}

func keyByID(c *sqlite.Conn, id int64) (animalstore.Key, error) {
	return oneKey(c, "SELECT "+keyColumns+" FROM keys WHERE id = ?", id)
}

// oneKey returns the key that query selects, or [db.ErrNotFound].
func oneKey(c *sqlite.Conn, query string, args ...any) (animalstore.Key, error) {
	var key animalstore.Key
	found := false
	err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		key, found = scanKey(stmt), true
		return nil
	}})
	if err != nil {
		return key, fmt.Errorf("select key: %w", err)
	}
	if !found {
		return key, db.ErrNotFound
	}
	return key, nil
}

func scanKey(stmt *sqlite.Stmt) animalstore.Key {
	return animalstore.Key{
		ID:          stmt.ColumnInt64(0),
		Name:        stmt.ColumnText(1),
		Plan:        animalstore.Plan(stmt.ColumnText(2)),
		Limits:      animalstore.Limits{PerMinute: stmt.ColumnInt64(3), PerDay: stmt.ColumnInt64(4)},
		Permissions: animalstore.Permissions(stmt.ColumnInt64(5)),
		Environment: animalstore.Environment(stmt.ColumnText(6)),
		CreatedAt:   animalstore.AtMilli(stmt.ColumnInt64(7)),
		ExpiresAt:   animalstore.AtMilli(stmt.ColumnInt64(8)),
		RevokedAt:   animalstore.AtMilli(stmt.ColumnInt64(9)),
	}
}
