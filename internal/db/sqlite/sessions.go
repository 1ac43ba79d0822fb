package sqlite

import (
	"context"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// CreateSession implements [db.Sessions].
func (d *DB) CreateSession(ctx context.Context, s db.Session) error {
	return d.insertNew(ctx, "insert session", "INSERT INTO console_sessions (hash, secret, expires_at) VALUES (?, ?, ?)",
		s.Hash[:], s.Secret[:], s.ExpiresAt.Milli())
}

// Session implements [db.Sessions].
func (d *DB) Session(ctx context.Context, hash [32]byte) (db.Session, error) {
	s, found := db.Session{Hash: hash}, false
	err := d.readFor(ctx, db.LookupCaller(hash), func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "SELECT secret, expires_at FROM console_sessions WHERE hash = ?", &sqlitex.ExecOptions{
			Args: []any{hash[:]},
			ResultFunc: func(stmt *sqlite.Stmt) error {
				found = true
				stmt.ColumnBytes(0, s.Secret[:])
				s.ExpiresAt = animalstore.AtMilli(stmt.ColumnInt64(1))
				return nil
			},
		})
	})
	switch {
	case err != nil:
		return db.Session{}, fmt.Errorf("select session: %w", err)
	case !found:
		return db.Session{}, db.ErrNotFound
	}
	return s, nil
}

// DeleteSession implements [db.Sessions].
func (d *DB) DeleteSession(ctx context.Context, hash [32]byte) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		if err := sqlitex.Execute(c, "DELETE FROM console_sessions WHERE hash = ?", &sqlitex.ExecOptions{Args: []any{hash[:]}}); err != nil {
			return fmt.Errorf("delete session: %w", err)
		}
		return nil
	})
}

// UseForm implements [db.Sessions].
func (d *DB) UseForm(ctx context.Context, hash [32]byte, at animalstore.Time) error {
	return d.insertNew(ctx, "insert form", "INSERT INTO console_forms (hash, used_at) VALUES (?, ?)", hash[:], at.Milli())
}

// insertNew inserts a row, or returns [db.ErrExists] if there is one with its key.
func (d *DB) insertNew(ctx context.Context, doing, query string, args ...any) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{Args: args})
		if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint {
			return db.ErrExists
		}
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		return nil
	})
}

// DropSessions implements [db.Sessions].
func (d *DB) DropSessions(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop sessions",
		"DELETE FROM console_sessions WHERE hash IN (SELECT hash FROM console_sessions WHERE expires_at < ? LIMIT ?)", before, max)
}

// DropForms implements [db.Sessions].
func (d *DB) DropForms(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop forms",
		"DELETE FROM console_forms WHERE hash IN (SELECT hash FROM console_forms WHERE used_at < ? LIMIT ?)", before, max)
}

// Size implements [db.DB].
func (d *DB) Size(context.Context) (int64, error) {
	return fileSize(d.path) + fileSize(d.path+"-wal"), nil
}
