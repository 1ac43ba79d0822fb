package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OccupiedError means that [Restore] found a store, or part of one, at the path of the
// new store.
type OccupiedError struct {
	Files []string // the existing files
}

func (e *OccupiedError) Error() string {
	return "a store already exists: " + strings.Join(e.Files, ", ")
}

// ErrUnsealed means that a downloaded backup has no checksum, so it may be incomplete.
var ErrUnsealed = errors.New("the backup has no checksum, so it is incomplete or was made by another tool")

// Restoration is what [Restore] does.
type Restoration struct {
	Backup string    // the file to read, unless From is set
	From   *Download // where to read the backup instead
	Store  string    // the file to create
	// Prepare is called with the path of the checked copy before it gets its name, to
	// change data that must not be served unchanged. It must leave a single file that is
	// completely on disk.
	Prepare func(path string) error
}

// Restore turns a backup into a store, at a path without one. It only reads the backup,
// and the store gets its name only when the copy is complete, checked and on disk. Until
// then, no server can use the path. A download is first stored next to the new store.
func Restore(ctx context.Context, engine Files, r Restoration, progress CopyProgress) (copied Copied, err error) {
	sealed := false
	if r.From == nil { // before anything is created
		defer removeNewLog(engine, r.Backup)()
		if sealed, err = checkBackup(ctx, engine, r.Backup); err != nil {
			return Copied{}, err
		}
	}
	release, err := engine.Reserve(r.Store)
	if err != nil {
		return Copied{}, createError(r.Store, err)
	}
	defer release()
	if err := refuseOccupied(engine, r.Store); err != nil {
		return Copied{}, err
	}
	if r.From != nil {
		f, err := r.From.fetch(ctx, r.Store+".download")
		if err != nil {
			return Copied{}, err
		}
		defer f.close()
		r.Backup = f.path + partialSuffix
		removeCompanions(engine, r.Backup)
		defer removeCompanions(engine, r.Backup)
		if sealed, err = checkBackup(ctx, engine, r.Backup); err == nil && !sealed {
			err = ErrUnsealed
		}
		if err != nil {
			return Copied{}, fmt.Errorf("%s: %w", r.From.Name, err)
		}
	}
	// A log left over from another store would be taken for the copy's: one that an
	// interrupted prepare left.
	removeCompanions(engine, r.Store+partialSuffix)
	defer removeCompanions(engine, r.Store+partialSuffix)
	copied, err = copyStore(ctx, engine, fileCopy{from: r.Backup, to: r.Store, prepare: r.Prepare}, progress)
	copied.Sealed = sealed
	return copied, err
}

// checkBackup fails if a file was changed since it was sealed, or isn't a store.
func checkBackup(ctx context.Context, engine Files, path string) (sealed bool, err error) {
	if sealed, err = checkSeal(path); err != nil {
		return sealed, err
	}
	source, err := engine.Open(ctx, path)
	if err != nil {
		return sealed, err
	}
	if err := source.Close(); err != nil || sealed {
		return sealed, err
	}
	return false, checkLength(engine, path)
}

// refuseOccupied fails if there is a store at the path of a new one, or its log, which would
// be taken for the new store's.
func refuseOccupied(engine Files, store string) error {
	if files := existing(append([]string{store}, engine.Companions(store)...)); len(files) > 0 {
		return &OccupiedError{files}
	}
	return nil
}

// existing returns which of these files exist, except locks: servers leave theirs.
func existing(names []string) (found []string) {
	for _, name := range names {
		if _, err := os.Lstat(name); err == nil && !strings.HasSuffix(name, ".lock") {
			found = append(found, name)
		}
	}
	return found
}

// removeNewLog returns a function that removes a store's log if there was none before.
func removeNewLog(engine Files, path string) func() {
	path, err := filepath.EvalSymlinks(path) // the log is next to the file, not next to the link
	if err != nil || len(existing(engine.Companions(path))) > 0 {
		return func() {}
	}
	return func() {
		if len(existing(engine.Companions(path))) > 0 {
			engine.RemoveLog(path) // if it fails, nothing but an empty file is left
		}
	}
}

func removeCompanions(engine Files, path string) {
	for _, name := range engine.Companions(path) {
		os.Remove(name)
	}
}
