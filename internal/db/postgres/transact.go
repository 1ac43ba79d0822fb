package postgres

import (
	"context"
	"errors"
	"fmt"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxAttempts is how often a write is tried that conflicts with others. The locks are
// taken in an order that avoids deadlocks, so one attempt should be enough.
const maxAttempts = 10

// lend calls f with a connection and a context for the rest of the operation's time,
// once it is the caller's turn. The context counts only until f begins: cancelling a
// statement costs its connection, and the outcome of a write would be unknown.
func (d *DB) lend(ctx context.Context, caller int64, f func(context.Context, *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.watch.check(); err != nil {
		return err
	}
	begun := d.watch.now()
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
	defer cancel()
	conn, err := d.acquire(working, caller)
	if err != nil {
		if working.Err() != nil {
			d.watch.timedOut(begun, d.probe)
		}
		return fmt.Errorf("connect: %w: %w", db.ErrUnavailable, err)
	}
	defer d.turns.Done(caller)
	defer d.release(conn)
	if err := ctx.Err(); err != nil { // it ended during Acquire
		return err
	}
	err = f(working, conn.Conn())
	switch {
	case !conn.Conn().IsClosed():
		d.watch.responded()
	case working.Err() != nil:
		d.watch.timedOut(begun, d.probe)
	}
	return err
}

// acquire returns a connection and takes a turn, which ends after the connection is
// released.
func (d *DB) acquire(ctx context.Context, caller int64) (*pgxpool.Conn, error) {
	if err := d.turns.Take(ctx, caller); err != nil {
		return nil, err
	}
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		d.turns.Done(caller)
	}
	return conn, err
}

// probe checks whether a server responds. Until then, no connection that was opened
// before is used again: its server doesn't respond, and once it does, it may no longer
// be the one to write to.
func (d *DB) probe(ctx context.Context) error {
	d.dropConns()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := d.hosts.find(ctx); err != nil {
		return err
	}
	d.dropConns() // some were opened before it was found
	return nil
}

// dropConns drops all connections, those in use when they are released. The idle ones
// are closed without a word to the server: while pgx tries to say goodbye, they would
// occupy their slots.
func (d *DB) dropConns() {
	for _, conn := range d.pool.AcquireAllIdle(d.watch.ctx) {
		conn.Hijack().PgConn().Conn().Close()
	}
	d.pool.Reset()
}

// release returns a connection to the pool. A broken one is removed at once:
// otherwise it would occupy its slot until pgx has said goodbye to the server in the
// background, which can take as long as the operation did.
func (d *DB) release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		conn.Hijack()
		return
	}
	conn.Release()
}

// read runs f, which executes one statement.
func (d *DB) read(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return d.readFor(ctx, db.CallerOf(ctx), f)
}

// readFor is read for this caller instead of the context's.
func (d *DB) readFor(ctx context.Context, caller int64, f func(context.Context, *pgx.Conn) error) error {
	return d.lend(ctx, caller, func(ctx context.Context, c *pgx.Conn) error {
		err := f(ctx, c)
		d.resetAfter(err)
		return err
	})
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// selectOne returns the row that a query finds, or [db.ErrNotFound].
func selectOne[T any](ctx context.Context, q querier, doing string, scan func(pgx.Row) (T, error), query string, args ...any) (T, error) {
	one, err := scan(q.QueryRow(ctx, query, args...))
	if errors.Is(err, pgx.ErrNoRows) {
		return one, db.ErrNotFound
	}
	return one, failed(doing, err)
}

// lockOne is selectOne of a row that nobody else can change until the transaction
// ends.
func lockOne[T any](ctx context.Context, tx pgx.Tx, doing string, scan func(pgx.Row) (T, error), query string, args ...any) (T, error) {
	return selectOne(ctx, tx, doing, scan, query+" FOR NO KEY UPDATE", args...)
}

// readOne is selectOne outside a transaction.
func readOne[T any](ctx context.Context, d *DB, doing string, scan func(pgx.Row) (T, error), query string, args ...any) (T, error) {
	return readOneFor(ctx, d, db.CallerOf(ctx), doing, scan, query, args...)
}

// readOneFor is readOne for this caller instead of the context's.
func readOneFor[T any](ctx context.Context, d *DB, caller int64, doing string, scan func(pgx.Row) (T, error), query string, args ...any) (one T, err error) {
	err = d.readFor(ctx, caller, func(ctx context.Context, c *pgx.Conn) (err error) {
		one, err = selectOne(ctx, c, doing, scan, query, args...)
		return err
	})
	return one, err
}

// list runs a statement and returns its rows, never nil.
func list[T any](ctx context.Context, d *DB, doing string, limit int, scan func(pgx.Row) (T, error), query string, args ...any) ([]T, error) {
	all := make([]T, 0, min(limit, 128))
	if limit > longList {
		caller := db.CallerOf(ctx)
		if err := d.long.Take(ctx, caller); err != nil {
			return nil, err
		}
		defer d.long.Done(caller)
	}
	err := d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return failed(doing, err)
		}
		defer rows.Close()
		for rows.Next() {
			one, err := scan(rows)
			if err != nil {
				return failed(doing, err)
			}
			all = append(all, one)
		}
		return failed(doing, rows.Err())
	})
	return all, err
}

// write runs f in a transaction, and retries it after a conflict with another one.
func (d *DB) write(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return d.change(ctx, func(ctx context.Context, c *pgx.Conn) error { return transact(ctx, c, f) })
}

// writeStatement runs f, which executes one statement without a transaction.
func (d *DB) writeStatement(ctx context.Context, doing string, f func(context.Context, *pgx.Conn) error) error {
	return d.change(ctx, func(ctx context.Context, c *pgx.Conn) error {
		forgetWarnings(c)
		return settled(c, doing, f(ctx, c))
	})
}

func (d *DB) change(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return d.lend(ctx, db.CallerOf(ctx), func(ctx context.Context, c *pgx.Conn) (err error) {
		for range maxAttempts {
			if err = f(ctx, c); !isConflict(err) || c.IsClosed() {
				break
			}
		}
		d.resetAfter(err)
		return err
	})
}

// resetAfter drops all connections if err says that the server is shutting down or
// has become read-only, because the others lead to the same server. New connections
// use the host that the URL leads to by then.
func (d *DB) resetAfter(err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && endsConnection(refused) {
		d.pool.Reset()
	}
}

func transact(ctx context.Context, c *pgx.Conn, f func(context.Context, pgx.Tx) error) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return failed("begin", err)
	}
	defer tx.Rollback(ctx) // a no-op after a commit
	if err := f(ctx, tx); err != nil {
		return err
	}
	// A failure during the commit leaves the outcome unknown, so check for a lost
	// connection first.
	if ctx.Err() != nil || c.IsClosed() || !alive(c.PgConn().Conn()) {
		return fmt.Errorf("commit: %w: the connection was lost before", db.ErrUnavailable)
	}
	forgetWarnings(c)
	return settled(c, "commit", tx.Commit(ctx))
}

// settled derives the outcome of a write from what its commit returned. An error of
// the connection doesn't show whether the commit was sent: pgx returns the same error
// if the connection broke while it waited for the response.
func settled(c *pgx.Conn, doing string, err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil && warned(c):
		// The write is on disk on this server, but not on its standby.
		return fmt.Errorf("%s: %w: the server gave up waiting for its standby", doing, db.ErrOutcomeUnknown)
	case err == nil:
		return nil
	case errors.As(err, &refused) && !isFatal(refused), !isConnection(err) && refused == nil:
		return failed(doing, err) // the server refused it, or this is a bug
	}
	return fmt.Errorf("%s: %w: %w", doing, db.ErrOutcomeUnknown, err)
}

// warnedKey marks a connection on which the server sent a warning.
const warnedKey = "animalstore warned"

func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warnedKey] = true
	}
}

func forgetWarnings(c *pgx.Conn) { delete(c.PgConn().CustomData(), warnedKey) }

func warned(c *pgx.Conn) bool { return c.PgConn().CustomData()[warnedKey] != nil }
