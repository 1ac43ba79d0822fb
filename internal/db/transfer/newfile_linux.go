package transfer

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

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
