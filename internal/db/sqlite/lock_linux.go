package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// lockDatabaseFile locks the database file itself. On Linux, flock and the locks that
// SQLite uses don't affect each other.
func lockDatabaseFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f, syscall.LOCK_EX); err != nil {
		keepOpen(f)
		return nil, err
	}
	return f, nil
}

// refuseAlias refuses a file that a server is using under another name, a hard link: each
// name has its own WAL, and two WALs would corrupt the file.
func refuseAlias(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink < 2 {
		return nil
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		return nil // this is the name that the server uses
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	keepOpen(f)
	if err := tryLock(f, syscall.LOCK_SH); errors.Is(err, errServed) {
		return fmt.Errorf("%s is a hard link to a file that a server uses under another name: use that name", path)
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

// kept are descriptors of database files that must stay open until the process ends,
// because closing one drops the locks of every connection to that file in the process.
var kept struct {
	sync.Mutex
	files []*os.File
}

func keepOpen(f *os.File) {
	kept.Lock()
	defer kept.Unlock()
	kept.files = append(kept.files, f)
}
