package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
)

// CreateSession implements [db.Sessions].
func (d *DB) CreateSession(ctx context.Context, s db.Session) error {
	return d.insertNew(ctx, "insert session", "INSERT INTO console_sessions (hash, secret, expires_at) VALUES (?, ?, ?)",
		s.Hash[:], s.Secret[:], s.ExpiresAt.Milli())
}

// Session implements [db.Sessions].
func (d *DB) Session(ctx context.Context, hash [32]byte) (db.Session, error) {
	ctx = fair.WithCaller(ctx, fair.LookupByHash(hash))
	return readOne(ctx, d, "select session", db.ScanSession(hash),
		"SELECT secret, expires_at FROM console_sessions WHERE hash = ?", hash[:])
}

// DeleteSession implements [db.Sessions].
func (d *DB) DeleteSession(ctx context.Context, hash [32]byte) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		return execute(c, "delete session", "DELETE FROM console_sessions WHERE hash = ?", hash[:])
	})
}

// UseForm implements [db.Sessions].
func (d *DB) UseForm(ctx context.Context, hash [32]byte, at animalstore.Time) error {
	return d.insertNew(ctx, "insert form", "INSERT INTO console_forms (hash, used_at) VALUES (?, ?)", hash[:], at.Milli())
}

// insertNew inserts a row, or returns [db.ErrExists] if there is one with its key.
func (d *DB) insertNew(ctx context.Context, doing, query string, args ...any) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		err := execute(c, doing, query, args...)
		if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint {
			return db.ErrExists
		}
		return err
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
