//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock of a running server. It is held until the file is closed or
// the process ends, even if it is killed. It is a separate file, because closing the
// database file would drop SQLite's own locks.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%s cannot be created: a server needs write access to the directory of its database", path)
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another animalstore serves this file. Stop it first, or name another file with --database")
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
