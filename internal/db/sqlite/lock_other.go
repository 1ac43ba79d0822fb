//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

// lockFile always fails: without a lock, two servers could use the same file.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("serving a SQLite file needs file locks, which are only supported on Unix systems")
}
