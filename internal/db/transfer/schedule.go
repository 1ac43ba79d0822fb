package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

// maxSpread is how much an interval is extended at random, at most. Two copies of a store that
// see the same backups would otherwise make theirs in the same second, under the same name.
const maxSpread = 30 * time.Second

// backupPoll is how often the clock is checked: it may be set, and a machine may sleep.
const backupPoll = time.Minute

// Scheduler makes the backups of a schedule, one at a time in each place.
type Scheduler struct {
	SchedulerConfig
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
	Identity
	Schedule
	Now func() time.Time
	Log *slog.Logger
}

// NewScheduler prepares the backups of a store. It reserves their directory until
// Close, so that two servers don't use the same one.
func NewScheduler(ctx context.Context, c SchedulerConfig) (_ *Scheduler, err error) {
	s := newScheduler(c)
	s.Every += rand.N(min(maxSpread, c.Every/20) + 1)
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

func newScheduler(c SchedulerConfig) *Scheduler {
	s := &Scheduler{SchedulerConfig: c, release: func() error { return nil }, made: make(chan struct{}, 1)}
	s.copy = func(ctx context.Context, file string) (int64, error) {
		copied, err := Backup(ctx, c.Engine, c.Store, file, noProgress{})
		return copied.Size, err
	}
	s.uploads.stage = func(ctx context.Context, id string, at time.Time) (Staged, error) {
		return Stage(ctx, c.Engine, c.Store, "server", id, at, noProgress{})
	}
	return s
}

// readDir finds the newest backup in the directory.
func (s *Scheduler) readDir(ctx context.Context) error {
	_, found, err := s.identify(ctx, Directory(s.Dir))
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
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(wait, backupPoll)):
		}
	}
}

// make makes one backup in the directory and deletes old ones.
func (s *Scheduler) make(ctx context.Context, at time.Time) {
	made, err := s.makeLocal(ctx, at)
	switch {
	case ctx.Err() != nil && err != nil:
		s.Log.Info("backup cancelled because the server is stopping", "dir", s.Dir)
		return
	case err != nil:
		s.mu.Lock()
		s.last.Failures++
		s.mu.Unlock()
		s.Log.Error("backup failed: trying again at the next scheduled time", "dir", s.Dir, "file", made.Name, "next", at.Add(s.Every).UTC(), "err", err)
		return
	}
	s.mu.Lock()
	s.last = animalstore.Backup{At: animalstore.At(at), SizeBytes: made.Size, Failures: s.last.Failures}
	s.unsent = made
	s.mu.Unlock()
	select {
	case s.made <- struct{}{}:
	default:
	}
	s.Log.Info("backed up", "file", filepath.Join(s.Dir, made.Name), "bytes", made.Size, "took_ms", s.Now().Sub(at).Milliseconds())
	if err := s.prune(ctx, Directory(s.Dir), made); err != nil {
		s.Log.Error("old backups could not be deleted", "dir", s.Dir, "err", err)
	}
}

// makeLocal makes one backup in the directory.
func (s *Scheduler) makeLocal(ctx context.Context, at time.Time) (made Snapshot, err error) {
	id, _, err := s.identify(ctx, Directory(s.Dir))
	if err != nil {
		return made, err
	}
	s.removeUnfinished(id)
	made, _ = ParseSnapshot(SnapshotName(s.Store, id, at))
	if err := s.begin(ctx, Directory(s.Dir), at); err != nil {
		return made, err
	}
	made.Size, err = s.copy(ctx, filepath.Join(s.Dir, made.Name))
	return made, err
}

// prune deletes all but the newest backups of the store in a place. It also keeps the one that
// was just made: the clock may have been set back since. If the store has a new id now, it
// deletes none of the old one.
func (s *Scheduler) prune(ctx context.Context, place Place, made Snapshot) error {
	id, found, err := s.identify(ctx, place)
	if err != nil || id != made.Store {
		return err
	}
	var errs []error
	for _, old := range found[min(s.Keep, len(found)):] {
		if old.Name != made.Name {
			errs = append(errs, place.Delete(ctx, old.Name))
		}
	}
	return errors.Join(errs...)
}

// removeUnfinished removes backups that a killed server left unfinished.
func (s *Scheduler) removeUnfinished(id string) {
	entries, _ := os.ReadDir(s.Dir) // the backup will fail for the same reason and report it
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), partialSuffix)
		if left, snapshot := ParseSnapshot(name); ok && snapshot && left.Store == id {
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
