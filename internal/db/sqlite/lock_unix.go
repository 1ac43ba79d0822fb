//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock that says a server is at work, and keeps it until the
// file is closed or the process ends, however it ends. The database itself is
// never locked this way: closing it would drop the locks of SQLite.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%s cannot be made: a server needs the right to write to the directory of its database", path)
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
