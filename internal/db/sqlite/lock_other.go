//go:build !unix && !windows

package sqlite

import (
	"errors"
	"os"
)

type serverLock struct{ file *os.File }

// lockServer always fails: without a lock, two servers could use the same file.
func lockServer(string) (*serverLock, error) {
	return nil, errors.New("serving a SQLite file needs file locks, which are only supported on Unix systems and Windows")
}

func lockPath(path string) (*serverLock, error) { return lockServer(path) }

func (l *serverLock) Close() error { return nil }

func refuseAlias(string) error { return nil }
