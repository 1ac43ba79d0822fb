package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"animalstore/internal/db"
)

const (
	watchEvery = 500 * time.Millisecond
	// truncatedAfter is how many looks in a row must find a file truncated.
	truncatedAfter = 4
)

// watch notices within seconds that somebody removed, replaced or truncated the files
// of a running server, which SQLite would keep using. It compares the names with the
// files as they were. It opens files only at the start, because closing one would drop
// SQLite's locks.
type watch struct {
	db    *DB
	files map[string]fs.FileInfo // by path
	wal   *walCheck              // also used by the writer
	size  atomic.Int64           // of the database file when it was last found complete
	short int                    // looks in a row that found it truncated
	stop  chan struct{}
	done  chan struct{}
}

// startWatch must be called when all connections are open, so that all files exist.
func (d *DB) startWatch() error {
	w := &watch{db: d, files: map[string]fs.FileInfo{}, stop: make(chan struct{}), done: make(chan struct{})}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(d.path + suffix)
		if err != nil {
			return err
		}
		w.files[d.path+suffix] = info
	}
	var err error
	if w.wal, err = openWALCheck(d.path); err != nil {
		return err
	}
	w.size.Store(w.files[d.path].Size())
	d.watch = w
	go w.run()
	return nil
}

// close ends the watch. It must come before the connections are closed, because the
// last one removes the WAL. SQLite wouldn't report that it can't move the WAL into the
// database file first.
func (w *watch) close() error {
	close(w.stop)
	<-w.done
	err := w.checkWAL()
	if err != nil {
		w.db.fatal(err)
	}
	return err
}

func (w *watch) run() {
	defer close(w.done)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		if err := w.look(); err != nil {
			w.db.fatal(err)
			return
		}
	}
}

func (w *watch) look() error {
	if err := w.checkNames(); err != nil {
		return err
	}
	if err := w.checkWAL(); err != nil {
		return err
	}
	size, complete, err := w.checkSize()
	switch {
	case err != nil:
		return fmt.Errorf("read the header of the database: %w", err)
	case complete:
		w.size.Store(size)
		w.short = 0
		return nil
	}
	if w.short++; w.short < truncatedAfter {
		return nil
	}
	return w.truncated()
}

// lost returns what happened to the files, or nil if nothing did. It is for a caller that
// found damage, so one look is enough. A file that can't be read says nothing about what
// happened.
func (w *watch) lost() error {
	if err := w.checkNames(); err != nil {
		return err
	}
	if err := w.checkWAL(); errors.Is(err, errTruncatedWAL) {
		return err
	}
	if _, complete, err := w.checkSize(); err != nil || complete {
		return nil
	}
	return w.truncated()
}

// checkNames returns an error if a file was removed or replaced.
func (w *watch) checkNames() error {
	for path := range w.files {
		if err := w.checkName(path); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) checkName(path string) error {
	switch is, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed or renamed while the server was using it", path)
	case err != nil: // says nothing about the file
	case runtime.GOOS == "windows":
		// An open file can't be replaced there, and SameFile reports a difference
		// if it can't open the file once more.
	case !os.SameFile(w.files[path], is):
		return fmt.Errorf("%s was replaced by another file while the server was using it", path)
	}
	return nil
}

// checkWAL returns an error if the WAL was truncated.
func (w *watch) checkWAL() error {
	err := w.wal.check()
	if errors.Is(err, errTruncatedWAL) {
		return fmt.Errorf("%s-wal was %w while the server was using it", w.db.path, err)
	}
	return err
}

// reportWAL stops the server if its WAL was removed, replaced or truncated. It is for the
// writer, which must not acknowledge anything then.
func (w *watch) reportWAL() error {
	err := w.checkName(w.db.path + "-wal")
	if err == nil {
		err = w.checkWAL()
	}
	if err != nil {
		w.db.fatal(err)
		return fmt.Errorf("%w: %w", db.ErrOutcomeUnknown, err)
	}
	return nil
}

// checkSize returns the size of the database file, and whether the file is complete. A
// file may be shorter than its header says if a checkpoint is extending it, or couldn't
// because the disk is full. It isn't complete if it is also shorter than before.
func (w *watch) checkSize() (size int64, complete bool, err error) {
	size, want, err := sizeOf(w.db.lock.file)
	return size, size >= min(want, w.size.Load()) || w.db.writer.moving.Load(), err
}

func (w *watch) truncated() error {
	return fmt.Errorf("%s was truncated or overwritten while the server was using it", w.db.path)
}

// sizeOf returns the size of a database file, and the one that its header says. The size
// of a file without a header is -1.
func sizeOf(f *os.File) (size, want int64, err error) {
	if f == nil { // a system without a lock on the file
		return 0, 0, nil
	}
	var header [100]byte
	if _, err := f.ReadAt(header[:], 0); errors.Is(err, io.EOF) {
		return -1, 0, nil
	} else if err != nil {
		return 0, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if string(header[:16]) != "SQLite format 3\x00" {
		return -1, 0, nil
	}
	pageSize := int64(binary.BigEndian.Uint16(header[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	pages := int64(binary.BigEndian.Uint32(header[28:]))
	return info.Size(), pages * pageSize, nil
}
