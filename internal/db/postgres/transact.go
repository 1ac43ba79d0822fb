package postgres

import (
	"context"
	"errors"
	"fmt"

	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxAttempts is how often a write that conflicts with others is tried. The locks are
// taken in an order that avoids deadlocks, so one attempt should be enough.
const maxAttempts = 10

// read runs f, which executes one statement.
func (d *DB) read(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return d.withConn(ctx, func(ctx context.Context, c *pgx.Conn) error {
		err := f(ctx, c)
		d.resetAfter(err)
		return err
	})
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// selectOne returns the row that a query finds, or [db.ErrNotFound].
func selectOne[T any](ctx context.Context, q querier, doing string, scan func(db.Row) (T, error), query string, args ...any) (T, error) {
	one, err := scan(q.QueryRow(ctx, query, args...))
	if err == nil {
		return one, nil
	}
	var none T
	if errors.Is(err, pgx.ErrNoRows) {
		return none, db.ErrNotFound
	}
	return none, failed(doing, err)
}

// selectAll returns all rows that a query finds, never nil.
func selectAll[T any](ctx context.Context, q querier, doing string, scan func(db.Row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, failed(doing, err)
	}
	all, err := appendRows([]T{}, rows, scan)
	return all, failed(doing, err)
}

func appendRows[T any](all []T, rows pgx.Rows, scan func(db.Row) (T, error)) ([]T, error) {
	return pgx.AppendRows(all, rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
}

// lockOne is selectOne, and locks the row until the transaction ends.
func lockOne[T any](ctx context.Context, tx pgx.Tx, doing string, scan func(db.Row) (T, error), query string, args ...any) (T, error) {
	return selectOne(ctx, tx, doing, scan, query+" FOR NO KEY UPDATE", args...)
}

// readOne is selectOne outside a transaction.
func readOne[T any](ctx context.Context, d *DB, doing string, scan func(db.Row) (T, error), query string, args ...any) (one T, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		one, err = selectOne(ctx, c, doing, scan, query, args...)
		return err
	})
	return one, err
}

// list is selectAll outside a transaction.
func list[T any](ctx context.Context, d *DB, doing string, scan func(db.Row) (T, error), query string, args ...any) (all []T, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		all, err = selectAll(ctx, c, doing, scan, query, args...)
		return err
	})
	return all, err
}

// longPage is the limit above which reading a page of resources with names may take
// milliseconds of CPU time.
const longPage = 50

// listPage is list for a page of resources with names. Only as many long pages are read
// at once as there are processors. With one on every connection, other callers would get
// a connection in time but no processor: during bursts of long pages, the p99 of small
// reads would be 420 ms instead of 34. A distant server has its own processors, and most of
// the time is spent on the network: there, the limit would only make callers wait.
func listPage[T any](ctx context.Context, d *DB, doing string, limit int, scan func(db.Row) (T, error), query string,
	args ...any) ([]T, error) {
	if limit > longPage && !d.latency.isHigh() {
		caller := fair.CallerOf(ctx)
		if err := d.long.Acquire(ctx, caller); err != nil {
			return nil, err
		}
		defer d.long.Release(caller)
	}
	return list(ctx, d, doing, scan, query, args...)
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
	if err := d.commits.check(); err != nil {
		return err
	}
	return d.withConn(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		if err := d.commits.check(); err != nil { // it may have waited for its turn
			return err
		}
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

// emptyCommit makes a transaction's commit be written to the log and confirmed, like one
// with changes.
const emptyCommit = "pg_logical_emit_message(true, 'animalstore', '')"

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
