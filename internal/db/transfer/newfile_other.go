//go:build !linux

package transfer

import (
	"errors"
	"os"
)

// lockPartial does nothing to a new file. What was there before can't be told from one
// that is being written: a lock on the file would get in the way of SQLite's own.
func lockPartial(f *os.File) error {
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	return errors.New("this file was left by an interrupted run, or another one is writing it: remove it if none is running")
}

func unlockPartial(*os.File) {}

func relockPartial(*os.File) error { return nil }

// renameNew renames a file and fails if there is one with the new name.
func renameNew(from, to string) error { return linkNew(from, to) }

func freeSpace(string) (bytes int64, known bool) { return 0, false }
