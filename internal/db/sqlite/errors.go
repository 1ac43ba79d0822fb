package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// errClosed is returned by operations that start after Close.
var errClosed = errors.New("database is closed")

// classify translates SQLite's errors into those of package db.
func classify(err error) error {
	if err == nil {
		return nil
	}
	switch code := sqlite.ErrCode(err); {
	case isFull(err):
		return fmt.Errorf("%w: %w", db.ErrFull, err)
	case code.ToPrimary() == sqlite.ResultBusy, code.ToPrimary() == sqlite.ResultLocked:
		return fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	}
	return err
}

// isFatal reports whether an error in a write means that the file, or the system's cache
// of it, can't be trusted any more. A WAL index that can't grow means that the disk is
// full, which isn't fatal.
func isFatal(err error) bool {
	code := sqlite.ErrCode(err)
	switch code.ToPrimary() {
	case sqlite.ResultIOErr:
		return code != sqlite.ResultIOErrSHMSize && code != sqlite.ResultIOErrNoMem
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}

const checkAdvice = "Check the disk, run \"animalstore db check\", and restore a backup if it finds anything"

// callOnce returns a function that calls fatal at most once, with the error and what to do
// about it. fatal may be nil.
func callOnce(fatal func(error)) func(error) {
	var once sync.Once
	return func(err error) {
		if fatal != nil {
			once.Do(func() { fatal(fmt.Errorf("%w. %s", err, checkAdvice)) })
		}
	}
}

// describeOpenError tells an operator why a file can't be opened, and what to do.
func describeOpenError(path string, err error) error {
	switch code := sqlite.ErrCode(err); {
	case isFull(err):
		return fmt.Errorf("%s cannot be opened, because its disk is full: free some space and try again (%w)", path, err)
	case code.ToPrimary() == sqlite.ResultNotADB:
		return &db.OpenError{Reason: db.Foreign, Text: path + " is not a SQLite database"}
	case code.ToPrimary() == sqlite.ResultReadOnly, code.ToPrimary() == sqlite.ResultPerm, code.ToPrimary() == sqlite.ResultCantOpen:
		return fmt.Errorf("%s cannot be opened for writing: check its permissions, those of its directory, and that the disk isn't full (%w)", path, err)
	case isFatal(err):
		return fmt.Errorf("%s cannot be read: the disk failed or the file is damaged. %s (%w)", path, checkAdvice, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// isFull reports whether err means that the disk is full. SQLite has a separate code for
// a full disk that keeps the WAL's index from growing.
func isFull(err error) bool {
	code := sqlite.ErrCode(err)
	return code.ToPrimary() == sqlite.ResultFull || code == sqlite.ResultIOErrSHMSize || errors.Is(err, syscall.ENOSPC)
}
