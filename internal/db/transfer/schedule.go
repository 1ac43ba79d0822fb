package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"animalstore"
)

// Schedule says when and where to back up a store that is one file. Without Dir and To it
// makes no backups; with both, the backups in Dir are copied to To.
type Schedule struct {
	Dir   string        // directory of the backups; may be ""
	To    Remote        // place on another machine; may be nil
	Every time.Duration // at least a second
	Keep  int           // how many in each place; older ones are deleted
}

// DirectoryError reports a directory that can't be used for backups.
type DirectoryError struct{ Err error }

func (e *DirectoryError) Error() string { return "directory of backups: " + e.Err.Error() }
func (e *DirectoryError) Unwrap() error { return e.Err }

// backupPoll is how often the clock is checked: it may be set, and a machine may sleep.
const backupPoll = time.Minute

// Scheduler makes the backups of a schedule, one at a time in each place.
type Scheduler struct {
	SchedulerConfig
	id      string // of the store
	copy    func(ctx context.Context, file string) (size int64, err error)
	release func() error
	uploads uploads
	made    chan struct{} // receives when unsent was set

	mu     sync.Mutex
	last   animalstore.Backup // in the directory
	unsent Snapshot           // the newest one there; zero once it is in the remote place
	remote animalstore.RemoteBackup
}

// SchedulerConfig is what a [Scheduler] needs. No field may be empty.
type SchedulerConfig struct {
	Engine Files
	Store  string // its file
	Schedule
	Now func() time.Time
	Log *slog.Logger
}

// NewScheduler prepares the backups of a store. It reserves their directory until
// Close, so that two servers don't use the same one.
func NewScheduler(ctx context.Context, c SchedulerConfig) (*Scheduler, error) {
	id, err := storeID(ctx, c.Engine, c.Store)
	if err != nil {
		return nil, err
	}
	s := newScheduler(c, id)
	if c.Dir == "" {
		return s, nil
	}
	if s.release, err = reserveDir(c.Engine, c.Dir); err != nil {
		return nil, &DirectoryError{err}
	}
	if err := s.readDir(ctx); err != nil {
		return nil, errors.Join(&DirectoryError{err}, s.release())
	}
	return s, nil
}

func newScheduler(c SchedulerConfig, id string) *Scheduler {
	s := &Scheduler{SchedulerConfig: c, id: id, release: func() error { return nil }, made: make(chan struct{}, 1)}
	s.copy = func(ctx context.Context, file string) (int64, error) {
		copied, err := Backup(ctx, c.Engine, c.Store, file, noProgress{})
		return copied.Size, err
	}
	s.uploads.stage = func(ctx context.Context, at time.Time) (Staged, error) {
		return Stage(ctx, c.Engine, c.Store, at, noProgress{})
	}
	return s
}

// readDir finds the newest backup in the directory.
func (s *Scheduler) readDir(ctx context.Context) error {
	found, err := Snapshots(ctx, Directory(s.Dir), s.id, s.Now())
	if last := newest(found); last.Name != "" {
		s.unsent, s.last = last, animalstore.Backup{At: animalstore.At(last.At), SizeBytes: last.Size}
	}
	return err
}

// Last returns the newest backup in the directory. Its time is zero if there is none.
func (s *Scheduler) Last() animalstore.Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Close releases the directory. Call it when Run has returned.
func (s *Scheduler) Close() error { return s.release() }

// reserveDir fails if the directory can't be written to or another server uses it.
func reserveDir(engine Files, dir string) (release func() error, err error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the directory %s does not exist: create it first", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	release, err = engine.Reserve(filepath.Join(dir, "animalstore-backups"))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written to, or another server stores its backups there: give each server its own directory (%w)", dir, err)
	}
	return release, nil
}

// Run makes backups until ctx ends. A remote place that is slow or fails doesn't delay the
// backups in the directory.
func (s *Scheduler) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if s.Dir != "" {
		wg.Go(func() { s.runLocal(ctx) })
	}
	if s.To != nil {
		wg.Go(func() { s.runUploads(ctx) })
	}
	wg.Wait()
}

// runLocal makes the backups in the directory. The first is due when the newest existing
// backup is old enough, so that restarts don't add extra ones.
func (s *Scheduler) runLocal(ctx context.Context) {
	attempted := s.last.At.Time
	for {
		now := s.Now()
		if attempted.After(now) { // the clock was set back
			attempted = now
		}
		wait := attempted.Add(s.Every).Sub(now)
		if attempted.IsZero() || wait <= 0 {
			attempted = now
			s.make(ctx, now)
			wait = s.Every - s.Now().Sub(now)
		}
		timer := time.NewTimer(max(0, min(wait, backupPoll)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// make makes one backup in the directory and deletes old ones.
func (s *Scheduler) make(ctx context.Context, at time.Time) {
	s.removeUnfinished()
	name := SnapshotName(s.Store, s.id, at)
	file := filepath.Join(s.Dir, name)
	size, err := s.copy(ctx, file)
	switch {
	case ctx.Err() != nil && err != nil:
		s.Log.Info("backup cancelled because the server is stopping", "file", file)
		return
	case err != nil:
		s.mu.Lock()
		s.last.Failures++
		s.mu.Unlock()
		s.Log.Error("backup failed: trying again at the next scheduled time", "file", file, "next", at.Add(s.Every).UTC(), "err", err)
		return
	}
	made, _ := ParseSnapshot(name)
	s.mu.Lock()
	s.last = animalstore.Backup{At: animalstore.At(at), SizeBytes: size, Failures: s.last.Failures}
	s.unsent = made
	s.mu.Unlock()
	select {
	case s.made <- struct{}{}:
	default:
	}
	s.Log.Info("backed up", "file", file, "bytes", size, "took_ms", s.Now().Sub(at).Milliseconds())
	if err := prune(ctx, Directory(s.Dir), made, s.Keep, s.Now()); err != nil {
		s.Log.Error("old backups could not be deleted", "dir", s.Dir, "err", err)
	}
}

// removeUnfinished removes backups that a killed server left unfinished.
func (s *Scheduler) removeUnfinished() {
	entries, _ := os.ReadDir(s.Dir) // the backup will fail for the same reason and report it
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), partialSuffix)
		if left, snapshot := ParseSnapshot(name); ok && snapshot && left.Store == s.id {
			if err := os.Remove(filepath.Join(s.Dir, e.Name())); err != nil {
				s.Log.Error("an unfinished backup could not be removed", "err", err)
			}
		}
	}
}

// noProgress shows no progress.
type noProgress struct{}

func (noProgress) Copied(int64, int64) {}
func (noProgress) Checking(string)     {}
func (noProgress) Checked(Finding)     {}
