package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
)

// CreateSession implements [db.Sessions].
func (d *DB) CreateSession(ctx context.Context, s db.Session) error {
	return d.insertNew(ctx, "insert session", "INSERT INTO console_sessions (hash, secret, expires_at) VALUES ($1, $2, $3)",
		s.Hash[:], s.Secret[:], s.ExpiresAt.Milli())
}

// Session implements [db.Sessions].
func (d *DB) Session(ctx context.Context, hash [32]byte) (db.Session, error) {
	ctx = fair.WithCaller(ctx, fair.LookupByHash(hash))
	return readOne(ctx, d, "select session", db.ScanSession(hash),
		"SELECT secret, expires_at FROM console_sessions WHERE hash = $1", hash[:])
}

// DeleteSession implements [db.Sessions].
func (d *DB) DeleteSession(ctx context.Context, hash [32]byte) error {
	return d.writeStatement(ctx, "delete session", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "DELETE FROM console_sessions WHERE hash = $1", hash[:])
		return err
	})
}

// UseForm implements [db.Sessions].
func (d *DB) UseForm(ctx context.Context, hash [32]byte, at animalstore.Time) error {
	return d.insertNew(ctx, "insert form", "INSERT INTO console_forms (hash, used_at) VALUES ($1, $2)", hash[:], at.Milli())
}

// insertNew inserts a row, or returns [db.ErrExists] if there is one with its key.
func (d *DB) insertNew(ctx context.Context, doing, query string, args ...any) error {
	err := d.writeStatement(ctx, doing, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, query, args...)
		return err
	})
	if hasCode(err, uniqueViolation) {
		return db.ErrExists
	}
	return err
}

// DropSessions implements [db.Sessions].
func (d *DB) DropSessions(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop sessions", `DELETE FROM console_sessions WHERE hash IN (
		SELECT hash FROM console_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, max)
}

// DropForms implements [db.Sessions].
func (d *DB) DropForms(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop forms", `DELETE FROM console_forms WHERE hash IN (
		SELECT hash FROM console_forms WHERE used_at < $1 ORDER BY used_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, max)
}
