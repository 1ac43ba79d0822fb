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

// Restore turns a backup into a store, at a path without one. It only reads the backup,
// and the store gets its name only when the copy is complete, checked and on disk. No
// server can use the path meanwhile.
//
// prepare is called with the path of the checked copy before it gets its name, to
// change data that must not be served unchanged. It must leave a single file that is
// completely on disk.
func Restore(ctx context.Context, engine Files, backup, store string, prepare func(path string) error, progress CopyProgress) (Copied, error) {
	source, err := engine.Open(ctx, backup) // before anything is created
	if err != nil {
		return Copied{}, err
	}
	if err := source.Close(); err != nil {
		return Copied{}, err
	}
	release, err := engine.Reserve(store)
	if err != nil {
		return Copied{}, explainCreate(store, err)
	}
	defer release()
	// A log left over from another store would be taken for the new store's.
	occupied := new(OccupiedError)
	for _, name := range append([]string{store}, engine.Companions(store)...) {
		if _, err := os.Lstat(name); err == nil && !strings.HasSuffix(name, ".lock") {
			occupied.Files = append(occupied.Files, name)
		}
	}
	if len(occupied.Files) > 0 {
		return Copied{}, occupied
	}
	// The same applies to a log that an interrupted prepare left next to its copy.
	removeCompanions(engine, store+partialSuffix)
	defer removeCompanions(engine, store+partialSuffix)
	return copyStore(ctx, engine, backup, store, prepare, progress)
}

func removeCompanions(engine Files, path string) {
	for _, name := range engine.Companions(path) {
		os.Remove(name)
	}
}
