package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"animalstore/internal/db"
)

// Files is an engine that keeps a store in one file.
type Files interface {
	// Copy copies the store in the file from, as it is at one instant, into the empty
	// file to. A server may be using the store.
	Copy(ctx context.Context, from, to string, progress func(copied, total int64)) error

	// Open opens a store to check it.
	Open(ctx context.Context, path string) (db.Source, error)

	// Extent returns the page size of a store's file, and the length that its header says, or
	// 0 if it doesn't know the length.
	Extent(path string) (page, length int64, err error)

	// Companions returns the names of the other files that belong to a store.
	Companions(path string) []string

	// RemoveLog removes the empty log that reading a store can create, if nobody uses it.
	RemoveLog(path string) error

	// Reserve keeps servers away from a path until release is called, which leaves no
	// files there. It fails if a server is using the path.
	Reserve(path string) (release func() error, err error)
}

// CopyProgress observes a [Backup] or [Restore]: Copied is called as the copy grows,
// and then the methods of CheckProgress.
type CopyProgress interface {
	Copied(bytes, total int64)
	CheckProgress
}

// Copied describes the file that [Backup] or [Restore] created.
type Copied struct {
	Size   int64
	Checks int  // how many checks the copy passed
	Sealed bool // the backup has a checksum
}

// ErrDamaged means that a copy failed its checks, so it was removed.
var ErrDamaged = errors.New("the copy failed its checks")

// Backup copies a store into a new file, which gets its name only when it is complete,
// checked and on disk. It never replaces a file. A server may be using the store.
func Backup(ctx context.Context, engine Files, store, file string, progress CopyProgress) (Copied, error) {
	return copyStore(ctx, engine, fileCopy{from: store, to: file, seal: true}, progress)
}

// fileCopy is the copy of a store in another file.
type fileCopy struct {
	from, to string
	prepare  func(path string) error // changes the copy before it gets its name; may be nil
	seal     bool                    // the copy gets a checksum
}

// copyStore creates a file with the same store.
func copyStore(ctx context.Context, engine Files, c fileCopy, progress CopyProgress) (copied Copied, err error) {
	f, err := createNew(c.to)
	if err != nil {
		return Copied{}, err
	}
	defer f.close()
	partial := c.to + partialSuffix
	show := func(bytes, total int64) {
		copied.Size = total
		progress.Copied(bytes, total)
	}
	if err := refuseFullDisk(c.from, c.to); err != nil {
		return Copied{}, err
	}
	if err := engine.Copy(ctx, c.from, partial, show); err != nil {
		return Copied{}, err
	}
	if copied.Checks, err = checkCopy(ctx, engine, partial, progress); err != nil {
		return Copied{}, err
	}
	if c.prepare != nil {
		if err := c.prepare(partial); err != nil {
			return Copied{}, err
		}
	}
	if c.seal {
		if err := seal(f.file); err != nil {
			return Copied{}, err
		}
		copied.Sealed = true
	}
	return copied, f.publish()
}

// refuseFullDisk fails early if a copy can't fit, before it takes space that others
// need.
func refuseFullDisk(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return nil // Copy will report the error
	}
	free, known := freeSpace(filepath.Dir(to))
	if known && free < info.Size() {
		return fmt.Errorf("%w: the copy needs %d MB, and the disk of %s has %d MB left", db.ErrFull, info.Size()>>20+1, to, free>>20)
	}
	return nil
}

// checkCopy applies all checks to a copy.
func checkCopy(ctx context.Context, engine Files, path string, progress CheckProgress) (ran int, err error) {
	source, err := engine.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	found := &findings{CheckProgress: progress}
	ran, failed, err := Check(ctx, source, found)
	if err != nil {
		return ran, err
	}
	if failed > 0 {
		return ran, fmt.Errorf("%w: %s", ErrDamaged, strings.Join(found.wrong, "; "))
	}
	return ran, nil
}

// findings collects failed checks.
type findings struct {
	CheckProgress
	wrong []string
}

func (f *findings) Checked(finding Finding) {
	if !finding.OK() {
		what := "violated rule: " + finding.Rule
		if finding.Err != nil {
			what += fmt.Sprintf(" (%v)", finding.Err)
		} else if len(finding.Examples) > 0 {
			what += fmt.Sprintf(" (%s)", finding.Examples[0])
		}
		f.wrong = append(f.wrong, what)
	}
	f.CheckProgress.Checked(finding)
}
