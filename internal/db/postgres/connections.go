package postgres

import (
	"context"
	"fmt"
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
	if err := d.watch.check(); err != nil {
		return err
	}
	begun := d.watch.now()
	caller := fair.CallerOf(ctx)
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
// are cut off: pgx would try to close the session first, and they would occupy their
// slots until it gives up.
func (d *DB) dropConns() {
	for _, conn := range d.pool.AcquireAllIdle(d.watch.ctx) {
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

// probePause is the time between two probes of a server that doesn't respond.
const probePause = 50 * time.Millisecond

// watch tracks whether the server responds at all. Once an operation has timed out, and
// no other has heard from the server meanwhile, further operations fail at once until
// the server responds again. Otherwise a request with several operations, or one that
// waits for others, would wait for one timeout after the other.
type watch struct {
	heard atomic.Int64 // when the server last responded, since started
	gone  atomic.Bool

	started time.Time
	ctx     context.Context // ends with Close
	close   context.CancelFunc
}

func newWatch() *watch {
	w := &watch{started: time.Now()}
	w.ctx, w.close = context.WithCancel(context.Background())
	return w
}

func (w *watch) now() int64 { return int64(time.Since(w.started)) }

// responded records that the server responded.
func (w *watch) responded() { w.heard.Store(w.now()) }

// check returns an error while the server doesn't respond.
func (w *watch) check() error {
	if w.gone.Load() {
		return fmt.Errorf("%w: the server does not respond", db.ErrUnavailable)
	}
	return nil
}

// timedOut records that an operation that began at the given time got no response. If
// no other has since then, it probes the server until one succeeds.
func (w *watch) timedOut(begun int64, probe func(context.Context) error) {
	if w.heard.Load() >= begun || !w.gone.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for w.ctx.Err() == nil && probe(w.ctx) != nil {
			select {
			case <-time.After(probePause):
			case <-w.ctx.Done():
			}
		}
		w.gone.Store(false)
	}()
}
