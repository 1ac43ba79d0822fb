package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// errClosed is returned by operations that start after Close.
var errClosed = errors.New("database is closed")

// A checkpoint moves the log into the database once it has checkpointPages. If
// readers keep it from finishing, a later one waits for them, once the log has
// checkpointPagesForce.
const (
	checkEvery           = 8 // commits
	checkpointPages      = 2000
	checkpointPagesForce = 8 * checkpointPages
	checkpointTimeout    = 100 * time.Millisecond
)

// writer owns the connection that writes. Queued writes share one transaction, and
// so one wait for the disk. If there are more than a transaction takes, callers take
// turns: the only write of one doesn't wait for all writes of another.
//
// A caller that finds the connection free writes at once in its own goroutine, if it has a
// [db.Standby]: a disk can hang, and its time is limited. All other writes are queued. They
// are carried out by the goroutine that is writing, if they are queued before it begins,
// and otherwise by the writer's goroutine.
type writer struct {
	conn   *sqlite.Conn
	queue  writeQueue
	closed chan struct{} // closed to reject further writes
	ended  chan struct{} // closed after the last write is done
	once   sync.Once
	fatal  func(error)
	most   int       // writes in a transaction: the first waits for the last
	writes sync.Pool // of *write, which must not be shared between databases

	oneProcessor bool // goroutines run one at a time

	withoutSnapshots func(func() error) error // runs a checkpoint while readers keep no snapshot

	// writing is set while a goroutine writes. That goroutine owns the connection
	// and the fields below, until it clears writing or hands everything over to
	// the writer's goroutine by sending on wake.
	writing atomic.Bool
	wake    chan struct{}
	batch   []*write
	commits int // so far
	// categories are some that exist, those of the open transaction included.
	categories map[int64]bool
	force      int // pages in the log at which a checkpoint first waits for readers
	forceAt    int // pages at which it does so the next time

	// generation is odd from just before a commit becomes visible until just
	// after, and even otherwise. It is even again before a caller learns of the
	// commit.
	generation atomic.Uint64

	locked lockState
	counts writeCounts
}

// write is one caller's change.
type write struct {
	ctx  context.Context
	run  func(*sqlite.Conn) error
	sure bool // see doSure
	err  error
	done chan struct{} // receives one token when err is final

	progress atomic.Int32
	timer    *time.Timer // of its caller; nil until it is first needed
}

// maxBatch is the number of writes in one transaction, unless [Tuning] says
// otherwise.
const maxBatch = 1024

func startWriter(conn *sqlite.Conn, fatal func(error), most int) *writer {
	w := &writer{
		conn:   conn,
		closed: make(chan struct{}),
		ended:  make(chan struct{}),
		fatal:  fatal,
		most:   most,
		wake:   make(chan struct{}, 1),

		oneProcessor:     runtime.GOMAXPROCS(0) == 1,
		categories:       map[int64]bool{},
		withoutSnapshots: func(checkpoint func() error) error { return checkpoint() },

		force:   checkpointPagesForce,
		forceAt: checkpointPagesForce,
	}
	w.writes.New = func() any { return &write{done: make(chan struct{}, 1)} }
	go w.loop()
	return w
}

// do runs f in a transaction and returns when that is on disk or has failed, or when the
// deadline of ctx has passed: then it returns [db.ErrOutcomeUnknown] if the change may
// still be stored. If f returns an error, its changes are rolled back. f may be called
// more than once, so it must overwrite its results, not add to them.
func (w *writer) do(ctx context.Context, f func(*sqlite.Conn) error) error {
	return w.submit(ctx, f, false)
}

// doSure is do for an f that changes nothing before it is sure to succeed: afterwards
// only a failure of SQLite can stop it. An error for its caller, an [animalstore.Error],
// comes before the first change. So it needs no savepoint, for which SQLite would copy every
// page that f changes.
func (w *writer) doSure(ctx context.Context, f func(*sqlite.Conn) error) error {
	return w.submit(ctx, f, true)
}

func (w *writer) submit(ctx context.Context, f func(*sqlite.Conn) error, sure bool) error {
	select {
	case <-w.closed:
		return errClosed
	default:
	}
	wr := w.writes.Get().(*write)
	wr.ctx, wr.run, wr.sure, wr.err = ctx, f, sure, nil
	wr.progress.Store(writeWaiting)
	known, err := true, error(nil)
	if standby := db.StandbyOf(ctx); standby != nil && w.writing.CompareAndSwap(false, true) {
		err = w.writeOwn(wr, standby)
	} else {
		w.enqueue(wr)
		known, err = w.wait(wr)
	}
	if known {
		wr.ctx, wr.run = nil, nil
		w.writes.Put(wr)
	}
	return classify(err)
}

// enqueue leaves a write to another goroutine.
func (w *writer) enqueue(wr *write) {
	w.queue.push(wr)
	if w.writing.CompareAndSwap(false, true) { // the other goroutine just stopped
		w.wake <- struct{}{}
	}
}

// writeOwn carries out the write of a caller that found the connection free, and those
// that are queued, in the caller's goroutine.
func (w *writer) writeOwn(wr *write, standby db.Standby) (err error) {
	defer func() {
		if v := recover(); v != nil { // writing would stay set
			err = fmt.Errorf("panic in the writer: %v\n%s", v, debug.Stack())
			w.fatal(err)
		}
	}()
	standby.Begin(func() error {
		if known, err := w.giveUp(wr); !known {
			return classify(err)
		}
		return nil
	})
	// On one processor, nobody else runs until this goroutine waits for the disk, and
	// often not even then. So others get to queue their writes first. A caller that is
	// alone loses less than a microsecond.
	if w.oneProcessor {
		runtime.Gosched()
	}
	w.commit(w.drain(wr))
	// The caller doesn't wait for later writes, nor for a checkpoint.
	if w.commits%checkEvery == 0 || !w.stop() {
		w.wake <- struct{}{}
	}
	standby.End()
	select {
	case <-wr.done:
	default: // giveUp took it
	}
	return wr.err
}

// stop clears writing and reports true, unless more writes are queued: then this
// goroutine still owns the connection.
func (w *writer) stop() bool {
	w.writing.Store(false)
	return w.queue.empty() || !w.writing.CompareAndSwap(false, true)
}

func (w *writer) loop() {
	for range w.wake {
		w.checkpointIfDue()
		for !w.stop() {
			// Give other callers a chance to queue their writes: without this, on
			// few cores, most batches would have a single write.
			runtime.Gosched()
			w.commit(w.drain())
			w.checkpointIfDue()
		}
	}
}

// drain returns the given writes and the queued ones, up to the size of a batch.
func (w *writer) drain(first ...*write) []*write {
	w.batch = w.queue.pop(append(w.batch[:0], first...), w.most)
	return w.batch
}

// commit carries out a batch and wakes its callers.
func (w *writer) commit(batch []*write) {
	err := w.transact(batch)
	if isIOError(err) {
		w.fatal(fmt.Errorf("database write: %w", err))
	}
	w.commits++
	w.counts.commits.Add(1)
	w.counts.writes.Add(int64(len(batch)))
	for _, wr := range batch {
		if err != nil {
			wr.err = err
		}
		wr.done <- struct{}{}
	}
}

// checkpointIfDue keeps the log from growing without bound. A checkpoint that fails
// for another reason than an I/O error is harmless: the log keeps everything, and the
// next one tries again.
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
		err = w.withoutSnapshots(func() error { return w.checkpoint("PASSIVE") })
	default:
		// Another program may keep a read transaction open for as long as it likes.
		// Wait for it rarely and briefly, because writes wait too.
		w.forceAt = 2 * pages
		w.conn.SetBusyTimeout(checkpointTimeout)
		err = w.withoutSnapshots(func() error { return w.checkpoint("RESTART") })
		w.conn.SetBusyTimeout(busyTimeout)
	}
	if isIOError(err) {
		w.fatal(fmt.Errorf("database checkpoint: %w", err))
	}
}

func (w *writer) checkpoint(mode string) error {
	return w.exec("PRAGMA wal_checkpoint(" + mode + ")")
}

// logPages returns the number of pages in the log, including those that a checkpoint
// has moved: they stay until no reader needs them.
func (w *writer) logPages() (pages int, err error) {
	err = sqlitex.Execute(w.conn, "PRAGMA wal_checkpoint(NOOP)", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		pages = stmt.ColumnInt(1)
		return nil
	}})
	return pages, err
}

// errHalfway is the error of a transaction with a write that left some of its changes.
var errHalfway = errors.New("a write without a savepoint failed halfway")

// transact runs a batch in one transaction. If it returns an error, nothing of the
// batch is stored. The error of a single write is left in that write.
func (w *writer) transact(batch []*write) error {
	err := w.attempt(batch, false)
	if err == errHalfway { // as good as never: a page may be damaged
		err = w.attempt(batch, true)
	}
	return err
}

// attempt is transact, with savepoints for all writes or only where they are needed.
func (w *writer) attempt(batch []*write, savepoints bool) (err error) {
	if err := w.begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			clear(w.categories)
		}
		// After some errors SQLite has already rolled back.
		if err != nil && !w.conn.AutocommitEnabled() {
			// An I/O error takes precedence, because it has to stop the process.
			if rollback := w.exec("ROLLBACK"); isIOError(rollback) {
				err = fmt.Errorf("roll back: %w", rollback)
			}
		}
	}()
	for _, wr := range batch {
		if !wr.begin() {
			continue // its caller gave up
		}
		err := w.run(wr, len(batch) == 1, savepoints)
		wr.ran(cmp.Or(err, wr.err))
		if err != nil {
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

// run runs a write of a transaction. It returns an error only if the whole transaction
// is lost, as it is when its only write fails.
func (w *writer) run(wr *write, only, savepoint bool) error {
	switch {
	case only:
		return safely(wr.run, w.conn)
	case wr.sure && !savepoint:
		return w.runSure(wr)
	}
	return w.runAlone(wr)
}

// runSure runs a write that either changes nothing or succeeds, unless SQLite fails.
func (w *writer) runSure(wr *write) error {
	wr.err = safely(wr.run, w.conn)
	refused := (*animalstore.Error)(nil)
	switch {
	case wr.err == nil || errors.As(wr.err, &refused):
		return nil
	case isIOError(wr.err):
		return wr.err
	}
	return errHalfway
}

// runAlone runs one of several writes, so that a failure rolls back only that write.
// It returns an error only if the whole transaction is lost.
func (w *writer) runAlone(wr *write) error {
	if err := w.exec("SAVEPOINT one"); err != nil {
		return err
	}
	wr.err = safely(wr.run, w.conn)
	if wr.err != nil {
		if isIOError(wr.err) || w.conn.AutocommitEnabled() {
			return wr.err
		}
		clear(w.categories)
		if err := w.exec("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return w.exec("RELEASE one")
}

// safely turns a panic in f into an error, because it may run in another goroutine
// than its caller's, where a panic would end the process.
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

// close rejects further writes, finishes the queued ones and closes the file.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.closed)
		for !w.writing.CompareAndSwap(false, true) { // never cleared again
			time.Sleep(time.Millisecond)
		}
		close(w.wake)
		for !w.queue.empty() {
			w.commit(w.drain())
		}
		close(w.ended)
	})
	<-w.ended
	return w.conn.Close()
}
