package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// errClosed answers writes that come after Close.
var errClosed = errors.New("database is closed")

// The log is moved into the database when it has this many pages. Where readers
// keep that from finishing, they are waited for once it has many more.
const (
	checkEvery           = 8 // commits
	checkpointPages      = 1000
	checkpointPagesForce = 16 * checkpointPages
	checkpointPatience   = 100 * time.Millisecond
)

// writer owns the one connection that writes. It gathers whatever is queued
// into one transaction, so that all of it shares one wait for the disk.
//
// Its goroutine does so while there is a queue. A caller that finds nobody writing
// writes himself: to be passed from hand to hand would take a lone write about as
// long as a fast disk does.
type writer struct {
	conn   *sqlite.Conn
	queue  chan *write
	closed chan struct{} // closed to refuse further writes
	ended  chan struct{} // closed when the last write is answered
	once   sync.Once
	fatal  func(error)
	letGo  func(func() error) error // runs a function while readers keep nothing open
	most   int                      // writes in a transaction: the first waits for the last
	writes sync.Pool                // of *write, for reuse by this database alone

	// writing is set while somebody writes. To him alone belong the connection
	// and what follows, until he clears it or passes all that on by wake.
	writing atomic.Bool
	wake    chan struct{}
	batch   []*write
	commits int // so far
	force   int // pages in the log at which readers are first waited for
	forceAt int // and at which the next time

	// generation is odd from before a commit can be seen until after, and even
	// otherwise. It is even again before anybody learns of the commit.
	generation atomic.Uint64
}

// write is one caller's change on its way through the writer.
type write struct {
	ctx  context.Context
	run  func(*sqlite.Conn) error
	err  error
	done chan struct{} // holds one token once err is settled
}

// maxBatch is the number of writes in one transaction, unless [Tuning] says
// otherwise.
const maxBatch = 1024

func startWriter(conn *sqlite.Conn, fatal func(error), most int) *writer {
	w := &writer{
		conn:   conn,
		queue:  make(chan *write, most),
		closed: make(chan struct{}),
		ended:  make(chan struct{}),
		fatal:  fatal,
		letGo:  func(f func() error) error { return f() },
		most:   most,
		wake:   make(chan struct{}, 1),

		force:   checkpointPagesForce,
		forceAt: checkpointPagesForce,
	}
	w.writes.New = func() any { return &write{done: make(chan struct{}, 1)} }
	go w.loop()
	return w
}

// do runs f in a transaction and returns once that is on disk, or has failed.
// If f returns an error, nothing it did remains. f may be called again after
// that, so it sets its results and adds to nothing.
func (w *writer) do(ctx context.Context, f func(*sqlite.Conn) error) error {
	select {
	case <-w.closed:
		return errClosed
	default:
	}
	wr := w.writes.Get().(*write)
	wr.ctx, wr.run, wr.err = ctx, f, nil
	if w.writing.CompareAndSwap(false, true) {
		w.write(wr)
	} else if err := w.enqueue(wr); err != nil {
		return err
	}
	// From here on the caller waits for the outcome even if its context ends,
	// so that what it is told is always true.
	select {
	case <-wr.done:
	case <-w.ended:
		select {
		case <-wr.done: // answered by the last batch
		default:
			return errClosed
		}
	}
	err := wr.err
	wr.ctx, wr.run = nil, nil
	w.writes.Put(wr)
	return classify(err)
}

// enqueue leaves a write to others.
func (w *writer) enqueue(wr *write) error {
	select {
	case w.queue <- wr:
	default: // full: only now is the context asked, which may cost it a timer
		select {
		case w.queue <- wr:
		case <-w.closed:
			return errClosed
		case <-wr.ctx.Done():
			return wr.ctx.Err()
		}
	}
	if w.writing.CompareAndSwap(false, true) { // they just stopped
		w.wake <- struct{}{}
	}
	return nil
}

// write carries out a write of the caller's own, and what others queued.
func (w *writer) write(own *write) {
	defer func() {
		if v := recover(); v != nil { // nobody could write any more
			w.fatal(fmt.Errorf("panic in the writer: %v\n%s", v, debug.Stack()))
		}
	}()
	w.commit(w.drain(own))
	// The caller does not wait for the writes of others, nor for a checkpoint.
	if w.commits%checkEvery == 0 || !w.stop() {
		w.wake <- struct{}{}
	}
}

// stop lets others write, unless some wait for it to be done.
func (w *writer) stop() bool {
	w.writing.Store(false)
	return len(w.queue) == 0 || !w.writing.CompareAndSwap(false, true)
}

func (w *writer) loop() {
	for range w.wake {
		w.checkpointIfDue()
		for !w.stop() {
			// Let the callers that are about to queue a write do so: without
			// this, on few cores, most batches would hold a single write.
			runtime.Gosched()
			w.commit(w.drain())
			w.checkpointIfDue()
		}
	}
}

// drain returns these writes and those queued, as many as may share a commit.
func (w *writer) drain(first ...*write) []*write {
	w.batch = append(w.batch[:0], first...)
	for len(w.batch) < w.most {
		select {
		case wr := <-w.queue:
			w.batch = append(w.batch, wr)
		default:
			return w.batch
		}
	}
	return w.batch
}

// commit carries out a batch and answers its callers.
func (w *writer) commit(batch []*write) {
	err := w.transact(batch)
	if isIOError(err) {
		w.fatal(fmt.Errorf("database write: %w", err))
	}
	w.commits++
	for _, wr := range batch {
		if err != nil {
			wr.err = err
		}
		wr.done <- struct{}{}
	}
}

// checkpointIfDue keeps the log from growing without end. A failure other than
// of the disk costs nothing but time: the log holds everything until it works.
func (w *writer) checkpointIfDue() {
	if w.commits%checkEvery != 0 {
		return
	}
	pages, err := w.logPages()
	switch {
	case err != nil:
	case pages < checkpointPages:
		w.forceAt = w.force
	case pages < w.forceAt:
		err = w.letGo(func() error { return w.checkpoint("PASSIVE") })
	default:
		// Some other program may keep a reader open for as long as it likes. It is
		// waited for now and then, and not long: writes wait meanwhile.
		w.forceAt = 2 * pages
		w.conn.SetBusyTimeout(checkpointPatience)
		err = w.letGo(func() error { return w.checkpoint("RESTART") })
		w.conn.SetBusyTimeout(busyTimeout)
	}
	if isIOError(err) {
		w.fatal(fmt.Errorf("database checkpoint: %w", err))
	}
}

func (w *writer) checkpoint(mode string) error {
	return w.exec("PRAGMA wal_checkpoint(" + mode + ")")
}

// logPages is how many pages the log holds, moved or not: those that are moved
// stay until a writer finds no reader in them.
func (w *writer) logPages() (pages int, err error) {
	err = sqlitex.Execute(w.conn, "PRAGMA wal_checkpoint(NOOP)", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		pages = stmt.ColumnInt(1)
		return nil
	}})
	return pages, err
}

// transact runs the batch in one transaction. An error of its own means that
// none of the batch is stored; one write's error is left in that write.
func (w *writer) transact(batch []*write) (err error) {
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		// SQLite has ended the transaction by itself after some errors.
		if err != nil && !w.conn.AutocommitEnabled() {
			// Of two errors, the one that must stop the process counts.
			if rollback := w.exec("ROLLBACK"); isIOError(rollback) {
				err = fmt.Errorf("roll back: %w", rollback)
			}
		}
	}()
	for _, wr := range batch {
		if wr.err = wr.ctx.Err(); wr.err != nil {
			continue // its caller left before it was begun
		}
		run := w.runAlone
		if len(batch) == 1 {
			run = w.runOnly
		}
		if err := run(wr); err != nil {
			return err
		}
	}
	w.generation.Add(1)
	err = w.exec("COMMIT")
	w.generation.Add(1)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// runOnly runs the only write there is: its failure is that of the transaction.
func (w *writer) runOnly(wr *write) error { return safely(wr.run, w.conn) }

// runAlone runs one write so that its failure undoes it and nothing else. It
// returns an error only where the whole transaction is lost.
func (w *writer) runAlone(wr *write) error {
	if err := w.exec("SAVEPOINT one"); err != nil {
		return err
	}
	wr.err = safely(wr.run, w.conn)
	if wr.err != nil {
		if isIOError(wr.err) || w.conn.AutocommitEnabled() {
			return wr.err
		}
		if err := w.exec("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return w.exec("RELEASE one")
}

// safely turns a panic of f into an error: it is one caller's affair, and here it
// would end the process.
func safely(f func(*sqlite.Conn) error, c *sqlite.Conn) (err error) {
	defer func() {
		if v := recover(); v != nil {
			unwind(c)
			err = fmt.Errorf("panic in a write: %v\n%s", v, debug.Stack())
		}
	}()
	return f(c)
}

func (w *writer) exec(query string) error {
	return sqlitex.Execute(w.conn, query, nil)
}

// close refuses further writes, finishes those queued and closes the file.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.closed)
		for !w.writing.CompareAndSwap(false, true) { // and it stays so
			time.Sleep(time.Millisecond)
		}
		close(w.wake)
		for len(w.queue) > 0 {
			w.commit(w.drain())
		}
		close(w.ended)
	})
	<-w.ended
	return w.conn.Close()
}
