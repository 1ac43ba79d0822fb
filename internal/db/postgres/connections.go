package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/fair"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// withConn calls f with a connection and a context for the rest of the operation's time,
// once it is the caller's turn. ctx counts only until f begins: cancelling a statement
// costs its connection, and the outcome of a write would be unknown.
func (d *DB) withConn(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.breaker.check(); err != nil {
		return err
	}
	begun := d.breaker.now()
	caller := fair.CallerOf(ctx)
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
	defer cancel()
	conn, err := d.acquire(working, caller)
	if err != nil {
		if working.Err() != nil {
			d.breaker.timedOut(begun, d.probe)
		}
		return fmt.Errorf("connect: %w: %w", db.ErrUnavailable, err)
	}
	defer d.slots.Release(caller)
	defer d.release(conn)
	if err := ctx.Err(); err != nil { // it ended during Acquire
		return err
	}
	err = f(working, conn.Conn())
	switch {
	case !conn.Conn().IsClosed():
		d.breaker.responded()
	case working.Err() != nil:
		d.breaker.timedOut(begun, d.probe)
	}
	if errors.Is(err, db.ErrOutcomeUnknown) && (working.Err() != nil || warned(conn.Conn())) {
		d.commits.timedOut(begun, d.awaitCommit)
	}
	return err
}

// acquire returns a connection and takes a turn, which ends after the connection is
// released.
func (d *DB) acquire(ctx context.Context, caller fair.Caller) (*pgxpool.Conn, error) {
	if err := d.slots.Acquire(ctx, caller); err != nil {
		return nil, err
	}
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		d.slots.Release(caller)
	}
	return conn, err
}

// probe checks whether a server responds. Until then, no connection that was opened
// before is used again: its server doesn't respond, and once it does, it may no longer
// be the one to write to.
func (d *DB) probe(ctx context.Context) error {
	d.dropConns()
	if _, err := d.findPrimary(ctx); err != nil {
		return err
	}
	d.dropConns() // some were opened before it was found
	return nil
}

func (d *DB) findPrimary(ctx context.Context) (primary, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return d.hosts.find(ctx)
}

// awaitCommit waits until a commit is confirmed, or there is another primary. A primary
// that lost its standbys may respond to reads for as long as it runs, and never know that
// one of them was promoted. Its commits wait, each on a connection that PostgreSQL keeps
// until then, so there is one such commit and no other write.
func (d *DB) awaitCommit(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	confirmed, replaced := make(chan error, 1), make(chan error, 1)
	go func() { confirmed <- d.hosts.commit(ctx) }()
	go func() { replaced <- d.awaitPrimary(ctx) }()
	select {
	case err := <-confirmed:
		return err
	case err := <-replaced:
		return err
	}
}

// awaitPrimary waits until there is another primary than before. It returns an error if the
// one before has stopped responding: then connections to it are useless.
func (d *DB) awaitPrimary(ctx context.Context) error {
	was, trips := d.hosts.primary(), d.breaker.trips.Load()
	for {
		switch now, err := d.findPrimary(ctx); {
		case err != nil:
		case was.timeline == "":
			was = now // with one host, this is the first that is known of it
		case now != was && now.timeline >= was.timeline:
			d.dropConns()
			return nil
		}
		select {
		case <-time.After(findPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if d.breaker.trips.Load() != trips {
			return fmt.Errorf("%w: the server stopped responding", db.ErrUnavailable)
		}
	}
}

// dropConns drops all connections, those in use when they are released. The idle ones
// are cut off: pgx would try to close the session first, and they would occupy their
// slots until it gives up.
func (d *DB) dropConns() {
	for _, conn := range d.pool.AcquireAllIdle(d.breaker.ctx) {
		conn.Hijack().PgConn().Conn().Close()
	}
	d.pool.Reset()
}

// release returns a connection to the pool. A broken one is removed at once:
// otherwise it would occupy its slot while pgx tries to close the session in the
// background, for as long as the operation took.
func (d *DB) release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		conn.Hijack()
		return
	}
	conn.Release()
}

// latency is the time to the server and back.
type latency struct{ shortest atomic.Int64 } // in nanoseconds

// highLatency is longer than reading a long page takes.
const highLatency = 5 * time.Millisecond

func newLatency() *latency {
	l := new(latency)
	l.shortest.Store(math.MaxInt64)
	return l
}

// measure times a new connection. The shortest time counts: others depend on how busy the
// server or this process was.
func (l *latency) measure(ctx context.Context, c *pgx.Conn) error {
	began := time.Now()
	if err := c.Ping(ctx); err != nil {
		return err
	}
	took := int64(time.Since(began))
	for shortest := l.shortest.Load(); took < shortest && !l.shortest.CompareAndSwap(shortest, took); {
		shortest = l.shortest.Load()
	}
	return nil
}

func (l *latency) isHigh() bool { return l.shortest.Load() > int64(highLatency) }

// probePause is the time between two probes of a server that doesn't respond.
const probePause = 50 * time.Millisecond

// breaker makes operations fail at once while the server doesn't respond: from when an
// operation has timed out, and no other got a response in that time, until the server
// responds again. Otherwise a request with several operations, or one that waits for
// others, would wait for several timeouts.
type breaker struct {
	text  string       // what is wrong while it is gone
	heard atomic.Int64 // when the server last responded, since started
	gone  atomic.Bool
	trips atomic.Int64 // how often it was gone

	started time.Time
	ctx     context.Context // ends with Close
	close   context.CancelFunc
}

func newBreaker(text string) *breaker {
	b := &breaker{text: text, started: time.Now()}
	b.ctx, b.close = context.WithCancel(context.Background())
	return b
}

func (b *breaker) now() int64 { return int64(time.Since(b.started)) }

// responded records that the server responded.
func (b *breaker) responded() { b.heard.Store(b.now()) }

// check returns an error while the server doesn't respond.
func (b *breaker) check() error {
	if b.gone.Load() {
		return fmt.Errorf("%w: %s", db.ErrUnavailable, b.text)
	}
	return nil
}

// timedOut records that an operation that began at the given time got no response. If
// no other has since then, it probes the server until one succeeds.
func (b *breaker) timedOut(begun int64, probe func(context.Context) error) {
	if b.heard.Load() >= begun || !b.gone.CompareAndSwap(false, true) {
		return
	}
	b.trips.Add(1)
	go func() {
		for b.ctx.Err() == nil && probe(b.ctx) != nil {
			select {
			case <-time.After(probePause):
			case <-b.ctx.Done():
			}
		}
		b.responded() // operations that began earlier say nothing about it
		b.gone.Store(false)
	}()
}
