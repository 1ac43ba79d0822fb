package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// reader is a connection that reads.
//
// To begin and end a transaction for each read costs as much as to find an
// pet. So a reader keeps the one it has open while nobody commits anything, as
// the generation tells: then it still shows the store as it is.
type reader struct {
	conn     *sqlite.Conn
	last     uint64 // the generation of its last read
	snapshot bool   // a transaction of that generation is open
}

func (d *DB) newReader() (*reader, error) {
	conn, err := d.connect()
	if err != nil {
		return nil, err
	}
	return &reader{conn: conn}, nil
}

func (r *reader) close() error { return errors.Join(r.end(), r.conn.Close()) }

// end lets go of the state of the store that the reader shows.
func (r *reader) end() error {
	if !r.snapshot {
		return nil
	}
	r.snapshot = false
	return sqlitex.Execute(r.conn, "COMMIT", nil)
}

// read lends f a connection that shows the file as it is now. The queries here are
// bounded by their LIMIT, so the context only bounds the wait for the connection.
func (d *DB) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	return d.lend(ctx, func(r *reader) error {
		if err := r.end(); err != nil {
			return err
		}
		return f(r.conn)
	})
}

// readOwn is read for what nobody but this process changes.
func (d *DB) readOwn(ctx context.Context, f func(*sqlite.Conn) error) error {
	return d.lend(ctx, func(r *reader) error {
		if err := d.renew(r); err != nil {
			return err
		}
		if err := f(r.conn); err != nil {
			return errors.Join(err, r.end())
		}
		if d.moving.Load() {
			return r.end()
		}
		return nil
	})
}

// renew makes a reader show the store as it is now. It keeps a transaction open
// from the second read in a generation on: where commits follow each other
// quickly, it would not pay.
func (d *DB) renew(r *reader) error {
	generation, stable := d.Generation()
	if r.snapshot && stable && r.last == generation {
		return nil
	}
	if err := r.end(); err != nil {
		return err
	}
	if stable && r.last == generation && !d.moving.Load() && d.lock != nil {
		// The transaction begins with its first read. It shows all that was
		// committed in this generation, if not more.
		if err := sqlitex.Execute(r.conn, "BEGIN", nil); err != nil {
			return err
		}
		r.snapshot = true
	}
	r.last = generation
	return nil
}

// letGo has readers keep no transaction open while f runs, which moves the log: it
// cannot begin anew where one needs it. One that is in use and was about to be
// kept may escape, until the next time.
func (d *DB) letGo(f func() error) error {
	d.moving.Store(true)
	defer d.moving.Store(false)
	for range d.nread {
		select {
		case r := <-d.readers:
			err := r.end()
			d.readers <- r
			if err != nil {
				return err
			}
		default:
		}
	}
	return f()
}

func (d *DB) lend(ctx context.Context, f func(*reader) error) error {
	var r *reader
	select {
	case r = <-d.readers:
	default:
		select {
		case r = <-d.readers:
		case <-d.closed:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	finished := false
	defer func() {
		if !finished {
			unwind(r.conn)
			r.snapshot = !r.conn.AutocommitEnabled()
			r.end()
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

// unwind ends the statements that a panic left half way. Such a one would hold
// its connection to the state of the store it began in, for good.
func unwind(c *sqlite.Conn) { c.SetInterrupt(nil) }
