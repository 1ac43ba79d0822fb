// Package postgres keeps the store in a PostgreSQL database, which any number of
// servers may share.
//
// Who may do what at once is settled by constraints and row locks, under
// PostgreSQL's usual isolation (read committed). A read is one statement and
// costs one round trip (transact.go).
package postgres

import (
	"context"
	"fmt"
	"time"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// usualTimeout is the time an operation gets, the wait for a connection
	// included. It leaves a request room to say so within three seconds.
	usualTimeout = 2400 * time.Millisecond
	// startTimeout is the least time a host gets to answer when a program starts.
	startTimeout = 5 * time.Second
	// usualConns is the size of the pool. PostgreSQL admits a hundred
	// connections, unless it is told otherwise.
	usualConns = 16
	// trustedFor is how long an idle connection is taken to work without a
	// question. Something between the machines may forget it later than that.
	trustedFor = 30 * time.Second
)

// Options say how a database is opened.
type Options struct {
	// MustExist refuses a database without the store's tables.
	MustExist bool
	// Timeout is the time an operation gets. Zero is a default that suits a
	// server.
	Timeout time.Duration
}

// DB is a [db.DB] in a PostgreSQL database.
type DB struct {
	pool    *pgxpool.Pool
	timeout time.Duration
	watch   *watch
}

var _ db.DB = (*DB)(nil)

// Open connects to the database that a postgres:// URL names and brings its
// tables up to date, which any number of programs may do at once. The URL can
// name several hosts, and the size of the pool as pool_max_conns.
func Open(ctx context.Context, url string, opts Options) (*DB, error) {
	if opts.Timeout == 0 {
		opts.Timeout = usualTimeout
	}
	config, err := parse(url, opts.Timeout)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, config.ConnConfig, opts.MustExist); err != nil {
		return nil, fmt.Errorf("%s: %w", place(config.ConnConfig), err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(config.ConnConfig), err)
	}
	return &DB{pool: pool, timeout: opts.Timeout, watch: newWatch()}, nil
}

// Close waits for the operations under way. What comes afterwards gets an error.
func (d *DB) Close() error {
	d.watch.close()
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(2 * d.timeout): // nobody answers: there is nothing to wait for
	}
	return nil
}

// Ping implements [db.DB].
func (d *DB) Ping(ctx context.Context) error {
	return d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT 1")
		return failed("ping", err)
	})
}

// Generation implements [db.DB]. Other servers write to the database too.
func (d *DB) Generation() (uint64, bool) { return 0, false }

// parse reads a URL and adds what the engine relies on.
func parse(url string, timeout time.Duration) (*pgxpool.Config, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	// One host must not use up all of an operation's time: the next may answer.
	connectTimeout := timeout * 5 / 6
	config.PingTimeout = connectTimeout
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > trustedFor }
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) { return alive(c.PgConn().Conn()), nil }

	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		// Everything here was thought through for read committed: who waited for
		// a lock has to see what its holder left.
		"default_transaction_isolation": "read committed",
		// A commit that was not confirmed by a standby is told by a warning.
		"client_min_messages": "warning",
		// Every statement has an index to go by. One plan is kept for all
		// values, and a planner that does not know the limit nor how the rows
		// lie might rather read the table.
		"enable_seqscan":    "off",
		"enable_bitmapscan": "off",
		"jit":               "off",
	} {
		conn.RuntimeParams[name] = value
	}
	for name, value := range map[string]string{
		"application_name": "animalstore",
		// The server gives up where we no longer listen. A statement that waits
		// for a lock is told in time; one that commits is never cut short, for
		// we stopped listening long before.
		"lock_timeout":                        milliseconds(timeout * 4 / 5),
		"statement_timeout":                   milliseconds(timeout * 2),
		"idle_in_transaction_session_timeout": milliseconds(timeout * 2),
	} {
		if _, set := conn.RuntimeParams[name]; !set {
			conn.RuntimeParams[name] = value
		}
	}
	conn.OnNotice = noteWarning
	return config, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
