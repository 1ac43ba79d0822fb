package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// reader is a connection for reading.
//
// Beginning and ending a transaction costs as much as finding a pet. So a reader
// keeps its transaction open, as a snapshot, until the generation says that
// something was committed: until then the snapshot shows the current state.
//
// That is only true while this process holds the file's lock. Without it another
// process may write pets, and this one's generation doesn't change.
type reader struct {
	conn     *sqlite.Conn
	last     uint64 // the generation of its last read
	snapshot bool   // a transaction of that generation is open
}

func (d *DB) openReaders(serve bool) error {
	n, reserved := 1, 0
	if serve {
		reserved = 1 // looking up a key takes little and must not wait for long reads
		n = max(4, 2*runtime.GOMAXPROCS(0)) + reserved
	}
	d.turns = db.NewTurns(n, reserved)
	d.readers = make(chan *reader, n)
	for d.nread < n {
		conn, err := d.connect()
		if err != nil {
			return err
		}
		d.readers <- &reader{conn: conn}
		d.nread++
	}
	return nil
}

func (r *reader) close() error { return errors.Join(r.release(), r.conn.Close()) }

// release ends the snapshot, if any.
func (r *reader) release() error {
	if !r.snapshot {
		return nil
	}
	r.snapshot = false
	return sqlitex.Execute(r.conn, "COMMIT", nil)
}

// read calls f with a connection that sees the current state of the file. The
// context only limits the wait for the connection: the queries are limited by their
// LIMIT.
func (d *DB) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	return d.readFor(ctx, db.CallerOf(ctx), f)
}

// readFor is read for this caller instead of the context's.
func (d *DB) readFor(ctx context.Context, caller int64, f func(*sqlite.Conn) error) error {
	return d.lend(ctx, caller, func(r *reader) error {
		if err := r.release(); err != nil {
			return err
		}
		return f(r.conn)
	})
}

// readOwn is read for data that only a server changes, which a snapshot can serve.
func (d *DB) readOwn(ctx context.Context, f func(*sqlite.Conn) error) error {
	return d.lend(ctx, db.CallerOf(ctx), func(r *reader) error {
		if err := d.renew(r); err != nil {
			return err
		}
		if err := f(r.conn); err != nil {
			return errors.Join(err, r.release())
		}
		if d.moving.Load() {
			return r.release()
		}
		return nil
	})
}

// renew makes a reader see the current state. It starts a snapshot with the second
// read of a generation, because under frequent commits a snapshot costs more than it
// saves.
func (d *DB) renew(r *reader) error {
	generation, stable := d.Generation()
	if r.snapshot && stable && r.last == generation {
		return nil
	}
	if err := r.release(); err != nil {
		return err
	}
	if stable && r.last == generation && !d.moving.Load() && d.lock != nil {
		// The snapshot is taken by the first read after this, so it contains
		// everything committed up to this generation, or later.
		if err := sqlitex.Execute(r.conn, "BEGIN", nil); err != nil {
			return err
		}
		r.snapshot = true
	}
	r.last = generation
	return nil
}

// withoutSnapshots runs f, which is a checkpoint, after releasing the snapshots of
// all idle readers: the log can't restart while one needs it. A busy reader may keep
// its snapshot, until the next checkpoint.
func (d *DB) withoutSnapshots(f func() error) error {
	d.moving.Store(true)
	defer d.moving.Store(false)
	if err := d.releaseSnapshots(); err != nil {
		return err
	}
	return f()
}

func (d *DB) releaseSnapshots() error {
	for range d.nread {
		select {
		case r := <-d.readers:
			err := r.release()
			d.readers <- r
			if err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// lend calls f with a reader, once it is the caller's turn.
func (d *DB) lend(ctx context.Context, caller int64, f func(*reader) error) error {
	switch err := d.turns.Take(ctx, caller); {
	case errors.Is(err, db.ErrTurnsClosed):
		return errClosed
	case err != nil:
		return err
	}
	defer d.turns.Done(caller)
	var r *reader
	select {
	case r = <-d.readers: // soon: all that a checkpoint does with a reader is release it
	case <-d.closed:
		return errClosed
	}
	finished := false
	defer func() {
		if !finished {
			unwind(r.conn)
			r.snapshot = !r.conn.AutocommitEnabled()
			r.release()
		}
		d.readers <- r
	}()
	err := f(r)
	finished = true
	if isIOError(err) {
		d.fatal(fmt.Errorf("database read: %w", err))
	}
	return classify(err)
}

// unwind resets the statements that a panic interrupted. Such a statement would keep
// its connection in the state of the store it started with.
func unwind(c *sqlite.Conn) { c.SetInterrupt(nil) }
