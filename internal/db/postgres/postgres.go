// Package postgres stores everything in a PostgreSQL database, which any number of
// servers can share.
//
// Constraints and row locks control concurrent writes, under PostgreSQL's default
// isolation level (read committed). A read is one statement and takes one round trip
// (transact.go).
package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultTimeout limits an operation, including the wait for a connection. It lets
	// a request report the failure within three seconds.
	defaultTimeout = 2400 * time.Millisecond
	// startTimeout is the minimum timeout per host when a program starts.
	startTimeout = 5 * time.Second
	// defaultConns is the size of the pool. By default PostgreSQL allows a hundred
	// connections.
	defaultConns = 16
	// reservedConns is how many of them are only used to look up keys, if there are
	// more: that takes little and must not wait for long operations.
	reservedConns = 1
	// trustedFor is how long an idle connection is used without a ping. After a longer
	// time, a firewall in between may have dropped it.
	trustedFor = 30 * time.Second
)

// Options control how [Open] opens a database.
type Options struct {
	// MustExist makes Open fail instead of creating the tables.
	MustExist bool
	// Timeout limits each operation. The default suits a server.
	Timeout time.Duration
	// Log is told about new and former primaries. By default nothing is logged.
	Log *slog.Logger
}

// DB is a [db.DB] in a PostgreSQL database.
type DB struct {
	pool    *pgxpool.Pool
	slots   *fair.Semaphore // shares the pool's connections
	long    *fair.Semaphore // limits how many long pages are read at once: see listPage
	latency *latency
	timeout time.Duration
	breaker *breaker // for everything
	commits *breaker // for writes
	hosts   *hosts
	creates batcher[newPet, createdPet]
	pages   batcher[petPage, []animalstore.Pet]

	finishes sync.Map // of a *batcher[finishCall, finishOutcome] by webhook

	confirmed atomic.Pointer[confirmedEvents] // that may be shown: see confirm
}

var _ db.DB = (*DB)(nil)

// Open connects to the database of a postgres:// URL and creates or updates its tables,
// which is safe for concurrent use by several programs. The URL can contain several
// hosts, and the size of the pool as pool_max_conns.
func Open(ctx context.Context, url string, opts Options) (*DB, error) {
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	config, err := parseConfig(url, opts.Timeout)
	if err != nil {
		return nil, err
	}
	hosts := newHosts(config, opts.Log)
	if len(hosts.all) > 1 {
		finding, cancel := context.WithTimeout(ctx, startTimeout)
		_, _ = hosts.find(finding) // checkPooler says why none responds
		cancel()
		hosts.order(config.ConnConfig)
	}
	if err := checkPooler(ctx, hosts); err != nil {
		return nil, fmt.Errorf("%s: %w", location(config.ConnConfig), err)
	}
	if err := migrate(ctx, config.ConnConfig, opts.MustExist); err != nil {
		return nil, fmt.Errorf("%s: %w", location(config.ConnConfig), err)
	}
	latency := newLatency()
	config.AfterConnect = latency.measure
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location(config.ConnConfig), err)
	}
	conns := int(config.MaxConns)
	d := &DB{
		pool:    pool,
		slots:   fair.NewSemaphore(conns, min(reservedConns, conns-1)),
		long:    fair.NewSemaphore(max(2, runtime.GOMAXPROCS(0)), 0),
		latency: latency,
		timeout: opts.Timeout,
		breaker: newBreaker("the server does not respond"),
		commits: newBreaker("commits are not confirmed"),
		hosts:   hosts,
	}
	hosts.setOnPromotion(pool.Reset)
	d.creates.run, d.creates.timeout = d.createPets, d.timeout
	d.pages.run, d.pages.timeout = d.petPages, d.timeout
	return d, nil
}

// Close implements [db.DB].
func (d *DB) Close() error {
	d.breaker.close()
	d.commits.close()
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(2 * d.timeout): // the server doesn't respond
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

// fixedSettings are sent with every connection, whatever the URL says.
var fixedSettings = map[string]string{
	// The engine relies on read committed: after waiting for a lock, a statement has to
	// see what the holder changed.
	"default_transaction_isolation": "read committed",
	// A warning reports a commit that the standby didn't confirm.
	"client_min_messages": "warning",
	// Every statement has an index. One plan is cached for all values, and without
	// knowing the limit the planner might prefer to scan the table.
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"jit":               "off",
}

// limits are the settings that limit how long a statement or transaction takes. The URL
// can set them.
var limits = []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"}

// parseConfig parses a URL and adds the settings that the engine relies on.
func parseConfig(url string, timeout time.Duration) (*pgxpool.Config, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	// One host must not use up the whole timeout: the next one may respond.
	connectTimeout := timeout * 5 / 6
	config.PingTimeout = connectTimeout
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > trustedFor }
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) { return alive(c.PgConn().Conn()), nil }

	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	maps.Copy(conn.RuntimeParams, fixedSettings)
	for name, value := range map[string]string{
		"application_name": "animalstore",
		// The server gives up when we no longer wait. A wait for a lock ends early
		// enough for us to see the error. None of these cuts a commit short.
		"lock_timeout":                        milliseconds(timeout * 4 / 5),
		"statement_timeout":                   milliseconds(timeout),
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
