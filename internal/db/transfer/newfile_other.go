//go:build !linux

package transfer

import (
	"errors"
	"os"
)

// lockPartial accepts only a new file. An existing one may be a leftover or may be in
// use: without locks, which would conflict with SQLite's, there is no way to tell.
func lockPartial(f *os.File) error {
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	return errors.New("this file is left over from an interrupted run, or another process is writing it: remove it if none is running")
}

func unlockPartial(*os.File) {}

func relockPartial(*os.File) error { return nil }

// renameNew renames a file and fails if the new name exists.
func renameNew(from, to string) error { return linkNew(from, to) }

func freeSpace(string) (bytes int64, known bool) { return 0, false }
