package transfer

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockPartial locks a file until it is closed, even by a kill. Some network file
// systems have no locks; there, nothing prevents two processes from writing the same
// file at once.
func lockPartial(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errBeingWritten
	}
	return nil
}

func unlockPartial(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // some file systems have no locks
}

func relockPartial(f *os.File) error { return lockPartial(f) }

// renameNew renames a file and fails if the new name exists.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // such as NFS
		return linkNew(from, to)
	}
	return err
}

// freeSpace returns how many bytes a directory's disk has left.
func freeSpace(dir string) (bytes int64, known bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * fs.Bsize, true
}
