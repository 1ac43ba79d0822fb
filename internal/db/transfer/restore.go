package transfer

import (
	"context"
	"os"
	"strings"
)

// OccupiedError means that there is a store, or a part of one, where [Restore] was to
// create one.
type OccupiedError struct {
	Files []string // what is there
}

func (e *OccupiedError) Error() string {
	return "there is a store already: " + strings.Join(e.Files, ", ")
}

// Restore makes a backup a store, under a path where there is none. The backup itself
// is only read, and the store has its name only when the copy is complete, checked and
// on disk. No server can use the path meanwhile.
//
// prepare is called with the path of the checked copy before it has its name, to change
// what must not be served as it was. It must leave a single file, all of it on disk.
func Restore(ctx context.Context, engine Files, backup, store string, prepare func(path string) error, progress CopyProgress) (Copied, error) {
	source, _, err := engine.Open(ctx, backup) // before anything is created
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
	// A log that is left of another store would be taken for the new one's.
	occupied := new(OccupiedError)
	for _, name := range append([]string{store}, engine.Companions(store)...) {
		if _, err := os.Lstat(name); err == nil && !strings.HasSuffix(name, ".lock") {
			occupied.Files = append(occupied.Files, name)
		}
	}
	if len(occupied.Files) > 0 {
		return Copied{}, occupied
	}
	// The same goes for a log that an interrupted prepare left next to its copy.
	removeCompanions(engine, store+partialSuffix)
	defer removeCompanions(engine, store+partialSuffix)
	return copyStore(ctx, engine, backup, store, prepare, progress)
}

func removeCompanions(engine Files, path string) {
	for _, name := range engine.Companions(path) {
		os.Remove(name)
	}
}
