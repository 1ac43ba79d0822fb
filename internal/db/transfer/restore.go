package transfer

import (
	"context"
	"os"
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

// Restoration is what [Restore] does.
type Restoration struct {
	Backup string // the file to read
	Store  string // the file to create
	// Prepare is called with the path of the checked copy before it gets its name, to
	// change data that must not be served unchanged. It must leave a single file that is
	// completely on disk.
	Prepare func(path string) error
}

// Restore turns a backup into a store, at a path without one. It only reads the backup,
// and the store gets its name only when the copy is complete, checked and on disk. Until
// then, no server can use the path.
func Restore(ctx context.Context, engine Files, r Restoration, progress CopyProgress) (Copied, error) {
	sealed, err := checkSeal(r.Backup) // before anything is created
	if err != nil {
		return Copied{}, err
	}
	source, err := engine.Open(ctx, r.Backup)
	if err != nil {
		return Copied{}, err
	}
	if err := source.Close(); err != nil {
		return Copied{}, err
	}
	release, err := engine.Reserve(r.Store)
	if err != nil {
		return Copied{}, createError(r.Store, err)
	}
	defer release()
	// A log left over from another store would be taken for the new store's.
	occupied := new(OccupiedError)
	for _, name := range append([]string{r.Store}, engine.Companions(r.Store)...) {
		if _, err := os.Lstat(name); err == nil && !strings.HasSuffix(name, ".lock") {
			occupied.Files = append(occupied.Files, name)
		}
	}
	if len(occupied.Files) > 0 {
		return Copied{}, occupied
	}
	// The same applies to a log that an interrupted prepare left next to its copy.
	removeCompanions(engine, r.Store+partialSuffix)
	defer removeCompanions(engine, r.Store+partialSuffix)
	copied, err := copyStore(ctx, engine, fileCopy{from: r.Backup, to: r.Store, prepare: r.Prepare}, progress)
	copied.Sealed = sealed
	return copied, err
}

func removeCompanions(engine Files, path string) {
	for _, name := range engine.Companions(path) {
		os.Remove(name)
	}
}
