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

// maxAttempts is how often a write is tried that gets in the way of others. With
// the locks as they are taken here, no two wait for each other, so once should do.
const maxAttempts = 10

// lend gives f a connection and what is left of the operation's time. The
// caller's context counts until f begins. From then on f is carried through:
// cutting a statement off costs its connection, and of a write nobody would know
// the outcome.
func (d *DB) lend(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.watch.check(); err != nil {
		return err
	}
	return d.borrow(ctx, f)
}

// borrow is lend whether or not the server answers just now.
func (d *DB) borrow(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	begun := d.watch.now()
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
	defer cancel()
	conn, err := d.pool.Acquire(working)
	if err != nil {
		if working.Err() != nil {
			d.watch.unanswered(begun, d.ask)
		}
		return fmt.Errorf("connect: %w: %w", db.ErrUnavailable, err)
	}
	defer d.release(conn)
	if err := ctx.Err(); err != nil { // it ended while we waited
		return err
	}
	err = f(working, conn.Conn())
	switch {
	case !conn.Conn().IsClosed():
		d.watch.answered()
	case working.Err() != nil:
		d.watch.unanswered(begun, d.ask)
	}
	return err
}

// ask puts a question to the server, to hear whether it answers.
func (d *DB) ask(ctx context.Context) error {
	return d.borrow(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT 1")
		return err
	})
}

// release gives a connection back. One that broke is taken out of the pool at
// once: pgx tells the server in the background, for which it may have to wait
// as long as it did for the answer, and would keep its place until then.
func (d *DB) release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		conn.Hijack()
		return
	}
	conn.Release()
}

// read runs f, which is one statement.
func (d *DB) read(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return d.lend(ctx, func(ctx context.Context, c *pgx.Conn) error {
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
func readOne[T any](ctx context.Context, d *DB, doing string, scan func(pgx.Row) (T, error), query string, args ...any) (one T, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		one, err = selectOne(ctx, c, doing, scan, query, args...)
		return err
	})
	return one, err
}

// list runs a statement and returns its rows, never nil.
func list[T any](ctx context.Context, d *DB, doing string, limit int, scan func(pgx.Row) (T, error), query string, args ...any) ([]T, error) {
	all := make([]T, 0, min(limit, 128))
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

// write runs f in a transaction, as often as it takes to get past others that
// are in its way.
func (d *DB) write(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return d.change(ctx, func(ctx context.Context, c *pgx.Conn) error { return transact(ctx, c, f) })
}

// writeAlone runs f, which is one statement and a transaction by itself.
func (d *DB) writeAlone(ctx context.Context, doing string, f func(context.Context, *pgx.Conn) error) error {
	return d.change(ctx, func(ctx context.Context, c *pgx.Conn) error {
		forgetWarnings(c)
		return settled(c, doing, f(ctx, c))
	})
}

func (d *DB) change(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return d.lend(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		for range maxAttempts {
			if err = f(ctx, c); !isConflict(err) || c.IsClosed() {
				break
			}
		}
		d.resetAfter(err)
		return err
	})
}

// resetAfter drops all connections at the first refusal of a server that is going
// down, or is not the one to write to any more: the one that was refused, and
// those that lead to the same server. The next goes to where the URL leads then.
func (d *DB) resetAfter(err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && isFarewell(refused) {
		d.pool.Reset()
	}
}

func transact(ctx context.Context, c *pgx.Conn, f func(context.Context, pgx.Tx) error) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return failed("begin", err)
	}
	defer tx.Rollback(ctx) // does nothing after a commit
	if err := f(ctx, tx); err != nil {
		return err
	}
	// From here on it may be done without our knowing, so it is the last moment
	// to find that it cannot be.
	if ctx.Err() != nil || c.IsClosed() || !alive(c.PgConn().Conn()) {
		return fmt.Errorf("commit: %w: the connection was lost before", db.ErrUnavailable)
	}
	forgetWarnings(c)
	return settled(c, "commit", tx.Commit(ctx))
}

// settled tells what became of a write by what its commit returned. Whether an
// error came before anything was sent cannot be told by it: pgx says the same of a
// connection that broke while it waited for the answer.
func settled(c *pgx.Conn, doing string, err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil && warned(c):
		// It is on the disk of the one server, but not on that of its standby.
		return fmt.Errorf("%s: %w: the server gave up waiting for its standby", doing, db.ErrOutcomeUnknown)
	case err == nil:
		return nil
	case errors.As(err, &refused) && !isFatal(refused), !isConnection(err) && refused == nil:
		return failed(doing, err) // it was refused, or the mistake is ours
	}
	return fmt.Errorf("%s: %w: %w", doing, db.ErrOutcomeUnknown, err)
}

// Whether the server warned of something is remembered with the connection.
const warnedKey = "animalstore warned"

func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warnedKey] = true
	}
}

func forgetWarnings(c *pgx.Conn) { delete(c.PgConn().CustomData(), warnedKey) }

func warned(c *pgx.Conn) bool { return c.PgConn().CustomData()[warnedKey] != nil }
