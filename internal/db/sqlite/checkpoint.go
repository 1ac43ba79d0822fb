package sqlite

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A checkpoint moves the WAL into the database once it has checkpointPages. If
// readers keep it from finishing, a later one waits for them, once the WAL has
// checkpointPagesForce.
const (
	checkEvery           = 8 // commits
	checkpointPages      = 2000
	checkpointPagesForce = 8 * checkpointPages
	checkpointTimeout    = 100 * time.Millisecond
)

// checkpointIfDue keeps the WAL from growing without bound. Unless it fails with an I/O
// error, a failed checkpoint is harmless: the WAL keeps everything, and the next one tries
// again.
func (w *writer) checkpointIfDue() {
	if w.commits%checkEvery != 0 {
		return
	}
	pages, err := w.walPages()
	switch {
	case err != nil:
	case pages < checkpointPages:
		w.forceAt = w.force
	case pages < w.forceAt:
		err = w.checkpoint("PASSIVE")
	default:
		// Another program may keep a read transaction open indefinitely.
		// Wait for it rarely and briefly, because writes wait too.
		w.forceAt = 2 * pages
		w.conn.SetBusyTimeout(checkpointTimeout)
		err = w.checkpoint("RESTART")
		w.conn.SetBusyTimeout(busyTimeout)
	}
	if isFatal(err) {
		w.fatal(fmt.Errorf("database checkpoint: %w", err))
	}
}

func (w *writer) checkpoint(mode string) error {
	return w.exec("PRAGMA wal_checkpoint(" + mode + ")")
}

// walPages returns the number of pages in the WAL, including those that a checkpoint
// has moved: they stay until no reader needs them.
func (w *writer) walPages() (pages int, err error) {
	err = sqlitex.Execute(w.conn, "PRAGMA wal_checkpoint(NOOP)", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		pages = stmt.ColumnInt(1)
		return nil
	}})
	return pages, err
}
