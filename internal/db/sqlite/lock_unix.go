//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"animalstore/internal/db"
)

// errServed means that another process has the lock of a file.
var errServed error = &db.OpenError{Reason: db.Served, Text: "another animalstore serves this file"}

// serverLock keeps other servers away from a database file, until it is closed or the
// process ends, even if it is killed.
type serverLock struct {
	// file is the database file itself, so that the lock holds under every name of
	// the file. It is nil on systems where such a lock would get in the way of
	// SQLite's own.
	file *os.File
	// named is FILE.lock, for systems without a lock on the file, and for a file that
	// doesn't exist yet.
	named *os.File
}

// lockServer takes the lock of a running server. No connection to the file may be open
// in this process, and all connections must be closed before the lock is: closing a
// descriptor of the file drops SQLite's locks on it.
func lockServer(path string) (_ *serverLock, err error) {
	l := new(serverLock)
	if l.file, err = lockDatabaseFile(path); err != nil {
		return nil, err
	}
	if l.named, err = lockNamed(path + ".lock"); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// lockPath is lockServer for a file that may not exist.
func lockPath(path string) (*serverLock, error) {
	if _, err := os.Stat(path); err == nil {
		return lockServer(path)
	}
	named, err := lockNamed(path + ".lock")
	if err != nil {
		return nil, err
	}
	return &serverLock{named: named}, nil
}

func (l *serverLock) Close() error {
	var errs []error
	for _, f := range []*os.File{l.named, l.file} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// remove is Close, and removes the lock file.
func (l *serverLock) remove(path string) error {
	return errors.Join(os.Remove(path), l.Close()) // while nobody else can have it
}

func lockNamed(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%s cannot be created: a server needs write access to the directory of its database", path)
	}
	if err != nil {
		return nil, err
	}
	if err := tryLock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	if !isNamed(f) { // removed before it was locked
		f.Close()
		return lockNamed(path)
	}
	return f, nil
}

// isNamed reports whether an open file still has its name.
func isNamed(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}

func tryLock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errServed
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
