package sqlite

import (
	"errors"
	"fmt"
	"os"

	"animalstore/internal/db"

	"golang.org/x/sys/windows"
)

// errServed means that another process has the lock of a file.
var errServed error = &db.OpenError{Reason: db.Served, Text: "another animalstore serves this file"}

// serverLock keeps other servers away from a database file, until it is closed or the
// process ends, even if it is killed.
type serverLock struct {
	// named is FILE.lock. A lock on the database file itself would keep SQLite from
	// reading it on Windows.
	named *os.File
}

// lockServer takes the lock of a running server. A file that is served under another
// name, a hard link, isn't noticed.
func lockServer(path string) (*serverLock, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%s.lock cannot be created: a server needs write access to the directory of its database", path)
	}
	if err != nil {
		return nil, err
	}
	const exclusive = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), exclusive, 0, 1, 0, new(windows.Overlapped))
	if err == nil {
		return &serverLock{named: f}, nil
	}
	f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, errServed
	}
	return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// lockPath is lockServer for a file that may not exist.
func lockPath(path string) (*serverLock, error) { return lockServer(path) }

func (l *serverLock) Close() error { return l.named.Close() }

// remove is Close, and removes the lock file unless another process has opened it.
func (l *serverLock) remove(path string) error {
	err := l.Close()
	os.Remove(path)
	return err
}

func refuseAlias(string) error { return nil }
