package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
)

// idleReaders are the idle read connections, as a stack: the one used last is used next,
// because its pages are still in the processor's cache.
type idleReaders struct {
	mu       sync.Mutex
	returned sync.Cond
	stack    []*sqlite.Conn
	closed   bool
}

// take waits for a connection. It returns nil once close was called.
func (p *idleReaders) take() *sqlite.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.stack) == 0 && !p.closed {
		p.returned.Wait()
	}
	if p.closed {
		return nil
	}
	last := len(p.stack) - 1
	conn := p.stack[last]
	p.stack = p.stack[:last]
	return conn
}

func (p *idleReaders) put(conn *sqlite.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stack = append(p.stack, conn)
	p.returned.Signal()
}

// idle returns how many connections nobody uses.
func (p *idleReaders) idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stack)
}

// close makes take return nil, and closes all n connections as they are returned.
func (p *idleReaders) close(n int) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.returned.Broadcast()
	for len(p.stack) < n {
		p.returned.Wait()
	}
	for _, conn := range p.stack {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func (d *DB) openReaders(serve bool) error {
	n, reserved := 1, 0
	if serve {
		reserved = 1 // key lookups are quick and must not wait for long reads
		n = max(4, 2*runtime.GOMAXPROCS(0)) + reserved
	}
	d.turns = fair.NewTurns(n, reserved)
	d.readers.returned.L = &d.readers.mu
	for d.nread < n {
		conn, err := d.connect()
		if err != nil {
			return err
		}
		d.readers.put(conn)
		d.nread++
	}
	return nil
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
	conn := d.readers.take()
	if conn == nil {
		return errClosed
	}
	finished := false
	defer func() {
		if !finished {
			unwind(conn)
		}
		d.readers.put(conn)
	}()
	err := f(conn)
	finished = true
	if isFatal(err) {
		d.failed(fmt.Errorf("database read: %w", err))
	}
	return classify(err)
}

// unwind resets the statements that a panic interrupted, as SetInterrupt does for all
// statements of a connection. Such a statement would keep its connection in the state of
// the store it started with.
func unwind(c *sqlite.Conn) { c.SetInterrupt(nil) }
