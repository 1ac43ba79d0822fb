package sqlite

import (
	"context"
	"errors"
	"runtime"

	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
)

func (d *DB) openReaders(serve bool) error {
	n, reserved := 1, 0
	if serve {
		reserved = 1 // key lookups are quick and must not wait for long reads
		n = max(4, 2*runtime.GOMAXPROCS(0)) + reserved
	}
	d.turns = fair.NewTurns(n, reserved)
	d.readers = make(chan *sqlite.Conn, n)
	for ; d.nread < n; d.nread++ {
		conn, err := d.connect()
		if err != nil {
			return err
		}
		d.readers <- conn
	}
	return nil
}

// closeReaders closes the readers as they become idle.
func (d *DB) closeReaders() (err error) {
	for range d.nread {
		err = errors.Join(err, (<-d.readers).Close())
	}
	close(d.readers)
	return err
}

// read calls f with a connection that sees the current state of the file. The
// context only limits the wait for the connection: the queries are limited by their
// LIMIT.
func (d *DB) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	return d.readFor(ctx, fair.CallerOf(ctx), f)
}

// readFor is read for this caller instead of the context's.
func (d *DB) readFor(ctx context.Context, caller int64, f func(*sqlite.Conn) error) error {
	switch err := d.turns.Take(ctx, caller); {
	case errors.Is(err, fair.ErrClosed):
		return errClosed
	case err != nil:
		return err
	}
	defer d.turns.Done(caller)
	conn, ok := <-d.readers // doesn't wait, unless the readers are being closed
	if !ok {
		return errClosed
	}
	finished := false
	defer func() {
		if !finished {
			unwind(conn)
		}
		d.readers <- conn
	}()
	err := f(conn)
	finished = true
	return classify(err)
}

// unwind resets the statements that a panic interrupted, as SetInterrupt does for all
// statements of a connection. Such a statement would keep its connection in the state of
// the store it started with.
func unwind(c *sqlite.Conn) { c.SetInterrupt(nil) }
