package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"animalstore/internal/db"
)

// partialSuffix marks a file that is being written. It stays behind after a kill, and
// the next run for the same file removes it.
const partialSuffix = ".partial"

// ErrExists means that a file to be created already exists.
var ErrExists = errors.New("already exists")

// newFile is a file that gets its name only when it is complete. Until then it is
// FILE.partial.
type newFile struct {
	path string
	file *os.File
}

// createNew creates FILE.partial, empty and readable only by its owner. It refuses to
// start if FILE exists.
func createNew(path string) (*newFile, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s %w", path, ErrExists)
	}
	partial := path + partialSuffix
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, createError(path, err)
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, createError(path, err)
	}
	return &newFile{path, f}, nil
}

// isOurs reports whether FILE.partial is still the file that createNew created: another
// process may have begun to write the same FILE.
func (f *newFile) isOurs() bool {
	ours, err := f.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(f.path + partialSuffix)
	return err == nil && os.SameFile(ours, now)
}

// publish gives a complete file its name, on disk. It never replaces an existing file.
func (f *newFile) publish() error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	if !f.isOurs() {
		return fmt.Errorf("another process is writing %s too: wait until it is finished, or name another file", f.path)
	}
	if _, err := os.Lstat(f.path); err == nil {
		return fmt.Errorf("%s %w", f.path, ErrExists)
	}
	if err := os.Rename(f.path+partialSuffix, f.path); err != nil {
		return createError(f.path, err)
	}
	return syncDir(filepath.Dir(f.path))
}

// close releases the file, and removes it unless it was published.
func (f *newFile) close() {
	if f.isOurs() {
		os.Remove(f.path + partialSuffix)
	}
	f.file.Close()
}

// createError says what to do if a file can't be created.
func createError(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s %w", path, ErrExists)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the directory %s does not exist: create it first", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s is not a directory", dir)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s cannot be created: give the user that runs animalstore write access to %s (%w)", path, dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", db.ErrFull, err)
	}
	return err
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // a directory can't be synced there
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // some file systems don't support this
	}
	return errors.Join(err, d.Close())
}
