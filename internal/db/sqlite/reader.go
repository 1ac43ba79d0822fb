package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"animalstore/internal/fair"

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

// idleReaders are the readers that nobody uses. The last one used is the next to be
// used: its pages are in the processor's cache, and a snapshot pays off sooner.
type idleReaders struct {
	mu       sync.Mutex
	returned sync.Cond
	stack    []*reader
	closed   bool
}

// take waits for a reader. It returns nil once close was called.
func (p *idleReaders) take() *reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.stack) == 0 && !p.closed {
		p.returned.Wait()
	}
	if p.closed {
		return nil
	}
	last := len(p.stack) - 1
	r := p.stack[last]
	p.stack = p.stack[:last]
	return r
}

func (p *idleReaders) put(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stack = append(p.stack, r)
	p.returned.Signal()
}

// idle returns how many readers nobody uses.
func (p *idleReaders) idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stack)
}

// releaseSnapshots releases the snapshots of all idle readers.
func (p *idleReaders) releaseSnapshots() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.stack {
		if err := r.release(); err != nil {
			return err
		}
	}
	return nil
}

// close makes take return nil, and closes all n readers as they are returned.
func (p *idleReaders) close(n int) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.returned.Broadcast()
	for len(p.stack) < n {
		p.returned.Wait()
	}
	for _, r := range p.stack {
		err = errors.Join(err, r.close())
	}
	return err
}

func (d *DB) openReaders(serve bool) error {
	n, reserved := 1, 0
	if serve {
		reserved = 1 // looking up a key takes little and must not wait for long reads
		n = max(4, 2*runtime.GOMAXPROCS(0)) + reserved
	}
	d.turns = fair.NewTurns(n, reserved)
	d.readers.returned.L = &d.readers.mu
	for d.nread < n {
		conn, err := d.connect()
		if err != nil {
			return err
		}
		d.readers.put(&reader{conn: conn})
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
	return d.readFor(ctx, fair.CallerOf(ctx), f)
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
	return d.lend(ctx, fair.CallerOf(ctx), func(r *reader) error {
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
	if err := d.readers.releaseSnapshots(); err != nil {
		return err
	}
	return f()
}

// lend calls f with a reader, once it is the caller's turn.
func (d *DB) lend(ctx context.Context, caller int64, f func(*reader) error) error {
	switch err := d.turns.Take(ctx, caller); {
	case errors.Is(err, fair.ErrClosed):
		return errClosed
	case err != nil:
		return err
	}
	defer d.turns.Done(caller)
	r := d.readers.take()
	if r == nil {
		return errClosed
	}
	finished := false
	defer func() {
		if !finished {
			unwind(r.conn)
			r.snapshot = !r.conn.AutocommitEnabled()
			r.release()
		}
		d.readers.put(r)
	}()
	err := f(r)
	finished = true
	if isIOError(err) {
		d.failed(fmt.Errorf("database read: %w", err))
	}
	return classify(err)
}

// unwind resets the statements that a panic interrupted. Such a statement would keep
// its connection in the state of the store it started with.
func unwind(c *sqlite.Conn) { c.SetInterrupt(nil) }
