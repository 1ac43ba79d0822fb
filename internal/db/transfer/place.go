package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Place keeps backups: a directory or a bucket.
type Place interface {
	// List returns the files in the place itself, not those below it.
	List(ctx context.Context) ([]File, error)

	// Delete deletes a file. It isn't an error if the file doesn't exist.
	Delete(ctx context.Context, name string) error
}

// Remote is a place on another machine.
type Remote interface {
	Place

	// Put copies a local file. The name appears only when the copy is complete. progress,
	// unless it is nil, is called with the bytes sent so far.
	Put(ctx context.Context, name, file string, progress func(sent int64)) error

	// Open opens a file for reading from a position on, if it still has this version. If it
	// has another one, or the place can't do that, the content is all of the file.
	Open(ctx context.Context, name string, at int64, version string) (Content, error)

	// Unfinished returns the names of copies that were not completed, which take space.
	Unfinished(ctx context.Context) ([]string, error)

	// Abort deletes what was copied of an unfinished file.
	Abort(ctx context.Context, name string) error
}

// Content is what a remote place sends of a file. It may break off.
type Content struct {
	io.ReadCloser
	At      int64  // where it begins: the position that was asked for, or 0
	Size    int64  // of the whole file
	Version string // of the file; "" if the place doesn't say
}

// File is a file in a place.
type File struct {
	Name string
	Size int64
}

// Snapshot is a backup that a schedule or [Remote] keeps, with what its name says.
type Snapshot struct {
	File
	Store string    // id of the store
	At    time.Time // when the backup began
	// Ahead means that At is in the future: a clock was wrong. In a list, such a backup counts
	// as older than the others, or it would stay the newest until then.
	Ahead bool
}

// backupTime is the time in the name of a backup, in UTC.
const backupTime = "20060102T150405Z"

// snapshotName matches names such as store-0a1b2c3d4e5f-20261116T020000Z.db: the name of
// the store's file, the store's id and the time.
var snapshotName = regexp.MustCompile(`^.+-([0-9a-f]{12})-([0-9]{8}T[0-9]{6}Z)\.db$`)

// SnapshotName returns the name of a backup of a store's file.
func SnapshotName(file, store string, at time.Time) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-" + store + "-" + at.UTC().Format(backupTime) + ".db"
}

// ParseSnapshot returns what a name says, or false for names of other files.
func ParseSnapshot(name string) (Snapshot, bool) {
	m := snapshotName.FindStringSubmatch(name)
	if m == nil {
		return Snapshot{}, false
	}
	at, err := time.Parse(backupTime, m[2])
	return Snapshot{File: File{Name: name}, Store: m[1], At: at}, err == nil
}

// Snapshots returns the backups in a place, of all stores, newest first.
func Snapshots(ctx context.Context, place Place, now time.Time) ([]Snapshot, error) {
	files, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []Snapshot
	for _, f := range files {
		if s, ok := ParseSnapshot(f.Name); ok {
			s.Size, s.Ahead = f.Size, s.At.After(now)
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(x, y Snapshot) int {
		if x.Ahead != y.Ahead {
			return map[bool]int{true: 1, false: -1}[x.Ahead]
		}
		return cmp.Or(y.At.Compare(x.At), strings.Compare(x.Name, y.Name))
	})
	return found, nil
}

// newest returns the first of a list of snapshots, or none if its time can't be trusted.
func newest(found []Snapshot) Snapshot {
	if len(found) == 0 || found[0].Ahead {
		return Snapshot{}
	}
	return found[0]
}

// Upload copies the snapshot in a local file to a remote place. It first deletes what
// earlier uploads of the same store left unfinished. An upload of a newer snapshot isn't
// touched: it may be another process's.
func Upload(ctx context.Context, to Remote, s Snapshot, file string, progress func(sent int64)) error {
	unfinished, err := to.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("look for unfinished uploads: %w", err)
	}
	for _, name := range unfinished {
		if old, ok := ParseSnapshot(name); ok && old.Store == s.Store && !old.At.After(s.At) {
			if err := to.Abort(ctx, name); err != nil {
				return fmt.Errorf("abort the unfinished upload of %s: %w", name, err)
			}
		}
	}
	return to.Put(ctx, s.Name, file, progress)
}

// Staged is a snapshot in a temporary file next to the store.
type Staged struct {
	Snapshot
	Path   string
	Checks int // how many checks it passed
}

// Stage makes a backup in a temporary file, to upload it. The file's name contains by, so that
// a server and a command don't replace each other's. It replaces what a killed process left.
func Stage(
	ctx context.Context, engine Files, store, by, id string, at time.Time, progress CopyProgress,
) (Staged, error) {
	s, _ := ParseSnapshot(SnapshotName(store, id, at))
	path := store + "." + by + ".upload"
	if err := removeFile(path); err != nil {
		return Staged{}, err
	}
	copied, err := Backup(ctx, engine, store, path, progress)
	if err != nil {
		return Staged{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Staged{}, err
	}
	s.Size = info.Size()
	return Staged{s, path, copied.Checks}, nil
}

// Remove deletes the temporary file.
func (s Staged) Remove() error { return removeFile(s.Path) }

// gone reports whether there is no file to upload: none was staged yet, or somebody removed it.
func (s Staged) gone() bool {
	_, err := os.Stat(s.Path)
	return err != nil
}

// Directory is a place for backups on this machine.
type Directory string

// List implements [Place].
func (d Directory) List(context.Context) ([]File, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var files []File
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // just removed
		}
		files = append(files, File{e.Name(), info.Size()})
	}
	return files, nil
}

// Delete implements [Place].
func (d Directory) Delete(_ context.Context, name string) error {
	return removeFile(filepath.Join(string(d), name))
}

// removeFile deletes a file that may already be gone.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
