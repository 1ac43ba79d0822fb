//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock, two servers could share a file.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("serving a SQLite file needs a Unix system, where it can be locked")
}
