package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// maxBatch limits the writes in one transaction, because the first waits for the last.
const maxBatch = 1024

// writer owns the connection that writes. All writes are queued and run by one goroutine.
// Those queued at the same time share one transaction, and so one wait for the disk. API
// keys take turns, so one key's backlog can't delay another's single write.
type writer struct {
	mu     sync.Mutex
	queue  fair.Queue[*write] // unbounded: each write is a request in progress
	closed bool               // no further writes are queued
	wake   chan struct{}      // holds a token while the queue is non-empty
	ended  chan struct{}      // closed after the last write is done

	maxBatch int
	fatal    func(error)
	checkWAL func() error // fails, and calls fatal, if the WAL was removed or replaced

	// Once the database is open, only the goroutine uses these.
	conn    *sqlite.Conn
	commits int // so far
	force   int // pages in the WAL at which a checkpoint first waits for readers
	forceAt int // pages at which it does so the next time

	// generation is odd from just before a commit becomes visible until just
	// after, and even otherwise. It is even again before a caller learns of the
	// commit.
	generation atomic.Uint64

	// locked is set while the goroutine waits to begin a transaction, and stays set if
	// that failed because another process has locked the database.
	locked atomic.Bool
	counts writeCounts
}

// write is one caller's change.
type write struct {
	ctx  context.Context
	run  func(*sqlite.Conn) error
	done chan struct{} // closed when err is final

	noSavepoint bool // see doWithoutSavepoint

	mu        sync.Mutex // guards what follows
	started   bool
	finished  bool // done is closed
	abandoned bool // the caller returned without the outcome
	err       error
}

func startWriter(conn *sqlite.Conn, fatal func(error)) *writer {
	w := &writer{
		conn:     conn,
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		fatal:    fatal,
		maxBatch: maxBatch,

		checkWAL: func() error { return nil },

		force:   checkpointPagesForce,
		forceAt: checkpointPagesForce,
	}
	go w.loop()
	return w
}

// do runs f in a transaction and returns once that is on disk or has failed, or once the
// deadline of ctx has passed: then it returns [db.ErrOutcomeUnknown] if the change may
// still be stored. If f returns an error, its changes are rolled back. f may be called
// more than once, and may still be running when do has returned an error: use [resultOf]
// for an f with a result.
func (w *writer) do(ctx context.Context, f func(*sqlite.Conn) error) error {
	return w.submit(&write{ctx: ctx, run: f})
}

// doWithoutSavepoint is do for an f that refuses, with an [animalstore.Error], only before
// its first change. If SQLite fails later, the whole batch runs again with savepoints. For
// a savepoint SQLite copies every page that f changes, which costs creates over 16
// connections 16 % of their throughput.
func (w *writer) doWithoutSavepoint(ctx context.Context, f func(*sqlite.Conn) error) error {
	return w.submit(&write{ctx: ctx, run: f, noSavepoint: true})
}

// resultOf runs f with do and returns its result. f must not set variables of its caller,
// which may have returned at its deadline.
func resultOf[T any](ctx context.Context, do func(context.Context, func(*sqlite.Conn) error) error, f func(*sqlite.Conn) (T, error)) (T, error) {
	var result T
	err := do(ctx, func(c *sqlite.Conn) (err error) {
		result, err = f(c)
		return err
	})
	if err != nil { // f may still be setting result
		var none T
		return none, err
	}
	return result, nil
}

// submit queues a write and waits for its outcome.
func (w *writer) submit(wr *write) error {
	wr.done = make(chan struct{})
	if !w.push(wr) {
		return errClosed
	}
	select {
	case <-wr.done:
		return classify(wr.err)
	case <-wr.ctx.Done():
	}
	if abandoned, err := w.abandon(wr, wr.ctx.Err()); abandoned {
		return classify(err)
	}
	<-wr.done
	return classify(wr.err)
}

// push queues a write, unless the writer is closed.
func (w *writer) push(wr *write) bool {
	caller := fair.CallerOf(wr.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue.Push(caller, wr)
	select {
	case w.wake <- struct{}{}:
	default: // the goroutine already has a token
	}
	return true
}

// abandon is called when the context of a write has ended. It reports whether the caller
// returns now, and with which error. A write that hasn't started can be abandoned at any
// time. Afterwards, a cancelled caller waits for the outcome, but no longer than its
// deadline, because the disk may hang. The error says that nothing was changed only if
// that is certain.
func (w *writer) abandon(wr *write, reason error) (abandoned bool, err error) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	late := errors.Is(reason, context.DeadlineExceeded)
	switch {
	case wr.finished, wr.started && !late:
		return false, nil
	case !wr.started && late && w.locked.Load():
		err = fmt.Errorf("%w: another process has locked the database", db.ErrUnavailable)
	case !wr.started || wr.err != nil:
		err = reason
	default:
		err = fmt.Errorf("commit: %w: %w", db.ErrOutcomeUnknown, reason)
	}
	wr.abandoned = true
	return true, err
}

// queued returns how many writes wait for the connection.
func (w *writer) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.Len()
}

// loop runs writes until the writer is closed and the queue is empty.
func (w *writer) loop() {
	defer close(w.ended)
	for range w.wake {
		for {
			// Let other callers queue their writes: without this, on few cores, most
			// batches would have a single write.
			runtime.Gosched()
			batch := w.nextBatch()
			if len(batch) == 0 {
				break
			}
			w.commit(batch)
			w.checkpointIfDue()
		}
	}
}

// nextBatch takes the queued writes, up to the size of a batch.
func (w *writer) nextBatch() (batch []*write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(batch) < w.maxBatch && !w.queue.Empty() {
		_, wr, _ := w.queue.Pop()
		batch = append(batch, wr)
	}
	return batch
}

// commit stores a batch and wakes its callers.
func (w *writer) commit(batch []*write) {
	err := w.transact(batch)
	if err == nil {
		err = w.checkWAL()
	}
	if isFatal(err) {
		w.fatal(fmt.Errorf("database write: %w", err))
	}
	if err == nil {
		w.commits++
		w.counts.commits.Add(1)
		w.counts.writes.Add(int64(len(batch)))
	}
	for _, wr := range batch {
		wr.finish(err)
	}
}

// finish wakes the caller. err is that of the whole transaction.
func (wr *write) finish(err error) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	if err != nil {
		wr.err = err
	}
	wr.finished = true
	close(wr.done)
}

// errPartialWrite means that a write without a savepoint failed after modifying rows: roll
// back and retry with savepoints.
var errPartialWrite = errors.New("a write without a savepoint failed after modifying rows")

// transact runs a batch in one transaction. If it returns an error, nothing of the
// batch is stored. If only one write fails, its error is in that write.
func (w *writer) transact(batch []*write) error {
	err := w.tryTransact(batch, false)
	if err == errPartialWrite { // rare: for example, the disk is full
		err = w.tryTransact(batch, true)
	}
	return err
}

// tryTransact is transact, with savepoints for all writes or only where they are needed.
func (w *writer) tryTransact(batch []*write, savepoints bool) (err error) {
	if err := w.begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		// After some errors SQLite has already rolled back.
		if err != nil && !w.conn.AutocommitEnabled() {
			// An I/O error takes precedence, because it has to stop the process.
			if rollback := w.exec("ROLLBACK"); isFatal(rollback) {
				err = fmt.Errorf("roll back: %w", rollback)
			}
		}
	}()
	for _, wr := range batch {
		if err := w.run(wr, len(batch) == 1, savepoints); err != nil {
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

// begin begins a transaction. It waits while another process writes.
func (w *writer) begin() error {
	w.locked.Store(true)
	err := w.exec("BEGIN IMMEDIATE")
	w.locked.Store(sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy)
	return err
}

// run runs a write of a transaction, unless its context has ended. It returns an error
// only if the whole transaction has failed, as it has when its only write fails.
func (w *writer) run(wr *write, only, savepoint bool) error {
	if !wr.start() {
		return nil
	}
	switch {
	case only:
		return wr.apply(w.conn)
	case wr.noSavepoint && !savepoint:
		return w.runWithoutSavepoint(wr)
	}
	return w.runWithSavepoint(wr)
}

// start reports whether the write may run: its caller is still waiting.
func (wr *write) start() bool {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	wr.err = wr.ctx.Err()
	wr.started = !wr.abandoned && wr.err == nil
	return wr.started
}

// apply runs the write without holding the lock, because it may hang.
func (wr *write) apply(c *sqlite.Conn) error {
	err := recoverPanic(wr.run, c)
	wr.mu.Lock()
	defer wr.mu.Unlock()
	wr.err = err
	return err
}

// runWithoutSavepoint runs a write that changes nothing if it fails, unless SQLite fails.
func (w *writer) runWithoutSavepoint(wr *write) error {
	err := wr.apply(w.conn)
	refused := (*animalstore.Error)(nil)
	switch {
	case err == nil || errors.As(err, &refused):
		return nil
	case isFatal(err):
		return err
	}
	return errPartialWrite
}

// runWithSavepoint runs one of several writes, so that a failure rolls back only that write.
// It returns an error only if the whole transaction has failed.
func (w *writer) runWithSavepoint(wr *write) error {
	if err := w.exec("SAVEPOINT one"); err != nil {
		return err
	}
	if err := wr.apply(w.conn); err != nil {
		if isFatal(err) || w.conn.AutocommitEnabled() {
			return err
		}
		if err := w.exec("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return w.exec("RELEASE one")
}

// recoverPanic turns a panic in f into an error: in the writer's goroutine it would end the
// process.
func recoverPanic(f func(*sqlite.Conn) error, c *sqlite.Conn) (err error) {
	defer func() {
		if v := recover(); v != nil {
			resetStatements(c)
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
	w.mu.Lock()
	w.closed = true
	close(w.wake)
	w.mu.Unlock()
	<-w.ended
	return w.conn.Close()
}
