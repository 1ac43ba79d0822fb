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
	d.slots = fair.NewSemaphore(n, reserved)
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
	caller := fair.CallerOf(ctx)
	switch err := d.slots.Acquire(ctx, caller); {
	case errors.Is(err, fair.ErrClosed):
		return errClosed
	case err != nil:
		return err
	}
	defer d.slots.Release(caller)
	conn, ok := <-d.readers // waits only while the readers are being closed
	if !ok {
		return errClosed
	}
	finished := false
	defer func() {
		if !finished {
			resetStatements(conn)
		}
		d.readers <- conn
	}()
	err := f(conn)
	finished = true
	return classify(err)
}

// resetStatements is for a connection on which a panic interrupted a statement. Until it is
// reset, every read would see the store as it was then. SetInterrupt resets all statements.
func resetStatements(c *sqlite.Conn) { c.SetInterrupt(nil) }
