package postgres

import (
	"context"
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
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := d.hosts.find(ctx); err != nil {
		return err
	}
	d.dropConns() // some were opened before it was found
	return nil
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
	heard atomic.Int64 // when the server last responded, since started
	gone  atomic.Bool

	started time.Time
	ctx     context.Context // ends with Close
	close   context.CancelFunc
}

func newBreaker() *breaker {
	b := &breaker{started: time.Now()}
	b.ctx, b.close = context.WithCancel(context.Background())
	return b
}

func (b *breaker) now() int64 { return int64(time.Since(b.started)) }

// responded records that the server responded.
func (b *breaker) responded() { b.heard.Store(b.now()) }

// check returns an error while the server doesn't respond.
func (b *breaker) check() error {
	if b.gone.Load() {
		return fmt.Errorf("%w: the server does not respond", db.ErrUnavailable)
	}
	return nil
}

// timedOut records that an operation that began at the given time got no response. If
// no other has since then, it probes the server until one succeeds.
func (b *breaker) timedOut(begun int64, probe func(context.Context) error) {
	if b.heard.Load() >= begun || !b.gone.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for b.ctx.Err() == nil && probe(b.ctx) != nil {
			select {
			case <-time.After(probePause):
			case <-b.ctx.Done():
			}
		}
		b.gone.Store(false)
	}()
}
