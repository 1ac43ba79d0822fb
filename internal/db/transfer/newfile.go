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
	file *os.File // locked until it is closed, where that is possible
	// takenOver: another process took FILE.partial while it was unlocked.
	takenOver bool
}

// createNew creates FILE.partial, empty and readable only by its owner. It refuses to
// start if FILE exists or another process is writing it.
func createNew(path string) (*newFile, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s %w", path, ErrExists)
	}
	partial := path + partialSuffix
	if err := removePartial(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, createError(path, err)
	}
	if err := lockPartial(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", partial, err)
	}
	return &newFile{path: path, file: f}, nil
}

// removePartial removes a partial file that a killed process left behind, if there is
// one. It fails if another process is still writing it.
func removePartial(path string) error {
	partial := path + partialSuffix
	f, err := os.OpenFile(partial, os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return createError(path, err)
	}
	defer f.Close()
	if err := lockPartial(f); err != nil {
		return fmt.Errorf("%s: %w", partial, err)
	}
	// Between opening and locking, the owner may have finished and another process
	// begun.
	if !isAt(f, partial) {
		return fmt.Errorf("%s: %w", partial, errBeingWritten)
	}
	return os.Remove(partial)
}

// isAt reports whether path refers to the open file f.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, now)
}

var errBeingWritten = errors.New("another process is writing this file: wait until it is finished, or name another file")

// withUnlocked unlocks the file while change runs, because an engine locks the files it
// opens, and locks it again afterwards. It fails if another process took the file in
// between.
func (f *newFile) withUnlocked(change func(path string) error) error {
	partial := f.path + partialSuffix
	unlockPartial(f.file)
	err := change(partial)
	if relockPartial(f.file) != nil || !isAt(f.file, partial) {
		f.takenOver = true
		return errors.Join(err, fmt.Errorf("%s: %w", partial, errBeingWritten))
	}
	return err
}

// publish gives a complete file its name, on disk. It never replaces an existing file.
func (f *newFile) publish() error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	if err := renameNew(f.path+partialSuffix, f.path); err != nil {
		return createError(f.path, err)
	}
	return syncDir(filepath.Dir(f.path))
}

// close releases the file, and removes it unless it was published.
func (f *newFile) close() {
	if !f.takenOver {
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

// linkNew implements renameNew where a rename always replaces. A kill in the middle
// leaves the file under both names, complete.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
