package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"animalstore"
)

// Schedule says when and where to back up a store that is one file.
type Schedule struct {
	Dir   string        // directory of the backups; "" makes none
	Every time.Duration // at least a second
	Keep  int           // how many; older ones are deleted
}

// DirectoryError reports a directory that can't be used for backups.
type DirectoryError struct{ Err error }

func (e *DirectoryError) Error() string { return "directory of backups: " + e.Err.Error() }
func (e *DirectoryError) Unwrap() error { return e.Err }

// backupTime is the time in the name of a backup, in UTC.
const backupTime = "20060102T150405Z"

// backupPoll is how often the clock is checked: it may be set, and a machine may sleep.
const backupPoll = time.Minute

// Scheduler makes the backups of a schedule, one at a time.
type Scheduler struct {
	Schedule
	prefix  string // of the backups' file names
	now     func() time.Time
	copy    func(ctx context.Context, file string) (size int64, err error)
	log     *slog.Logger
	release func() error

	mu   sync.Mutex
	last animalstore.Backup
}

// SchedulerConfig is what a [Scheduler] needs. No field may be empty.
type SchedulerConfig struct {
	Engine   Files
	Store    string // its file
	Schedule Schedule
	Now      func() time.Time
	Log      *slog.Logger
}

// NewScheduler prepares the backups of a store. It reserves their directory until
// Close: two servers sharing a directory would delete each other's backups.
func NewScheduler(c SchedulerConfig) (*Scheduler, error) {
	release, err := reserveDir(c.Engine, c.Schedule.Dir)
	if err != nil {
		return nil, &DirectoryError{err}
	}
	s := &Scheduler{Schedule: c.Schedule, prefix: backupPrefix(c.Store), now: c.Now, log: c.Log, release: release}
	s.copy = func(ctx context.Context, file string) (int64, error) {
		copied, err := Backup(ctx, c.Engine, c.Store, file, noProgress{})
		return copied.Size, err
	}
	files, err := s.list()
	if err != nil {
		return nil, errors.Join(&DirectoryError{err}, release())
	}
	if len(files) > 0 {
		s.last = animalstore.Backup{At: animalstore.At(files[0].at), SizeBytes: files[0].size}
	}
	return s, nil
}

// Last returns the newest backup. Its time is zero if there is none.
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

// backupPrefix returns the prefix of the names of a store's backups.
func backupPrefix(store string) string {
	base := filepath.Base(store)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-"
}

// Run makes backups until ctx ends. The first is due when the newest existing backup is
// old enough, so that restarts don't add extra ones.
func (s *Scheduler) Run(ctx context.Context) {
	attempted := s.last.At.Time
	for {
		now := s.now()
		if attempted.After(now) { // the clock was set back
			attempted = now
		}
		wait := attempted.Add(s.Every).Sub(now)
		if attempted.IsZero() || wait <= 0 {
			attempted = now
			s.make(ctx, now)
			wait = s.Every - s.now().Sub(now)
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

// make makes one backup and deletes old ones.
func (s *Scheduler) make(ctx context.Context, at time.Time) {
	s.removeUnfinished()
	file := filepath.Join(s.Dir, s.prefix+at.UTC().Format(backupTime)+".db")
	size, err := s.copy(ctx, file)
	switch {
	case ctx.Err() != nil && err != nil:
		s.log.Info("backup cancelled because the server is stopping", "file", file)
		return
	case err != nil:
		s.mu.Lock()
		s.last.Failures++
		s.mu.Unlock()
		s.log.Error("backup failed: trying again at the next scheduled time", "file", file, "next", at.Add(s.Every).UTC(), "err", err)
		return
	}
	s.mu.Lock()
	s.last = animalstore.Backup{At: animalstore.At(at), SizeBytes: size, Failures: s.last.Failures}
	s.mu.Unlock()
	s.log.Info("backed up", "file", file, "bytes", size, "took_ms", s.now().Sub(at).Milliseconds())
	if err := s.prune(); err != nil {
		s.log.Error("old backups could not be deleted", "dir", s.Dir, "err", err)
	}
}

// prune deletes all but the newest backups.
func (s *Scheduler) prune() error {
	files, err := s.list()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files[min(s.Keep, len(files)):] {
		errs = append(errs, os.Remove(f.path))
	}
	return errors.Join(errs...)
}

type backupFile struct {
	path string
	at   time.Time // when the backup began
	size int64
}

// list returns the backups of this store, newest first. It recognizes them by their
// names and ignores other files.
func (s *Scheduler) list() ([]backupFile, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, err
	}
	var files []backupFile
	for _, e := range entries {
		at, ok := s.timeOf(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // just removed
		}
		files = append(files, backupFile{filepath.Join(s.Dir, e.Name()), at, info.Size()})
	}
	slices.SortFunc(files, func(x, y backupFile) int { return cmp.Or(y.at.Compare(x.at), strings.Compare(x.path, y.path)) })
	return files, nil
}

var backupStamp = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)

// timeOf returns the time in the name of a backup, or false for other names.
func (s *Scheduler) timeOf(name string) (time.Time, bool) {
	rest, ours := strings.CutPrefix(name, s.prefix)
	stamp, complete := strings.CutSuffix(rest, ".db")
	if !ours || !complete || !backupStamp.MatchString(stamp) {
		return time.Time{}, false
	}
	at, err := time.Parse(backupTime, stamp)
	return at, err == nil
}

// removeUnfinished removes backups that a killed server left unfinished.
func (s *Scheduler) removeUnfinished() {
	entries, _ := os.ReadDir(s.Dir) // the backup will fail for the same reason and report it
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), partialSuffix)
		if _, ours := s.timeOf(name); ok && ours {
			if err := os.Remove(filepath.Join(s.Dir, e.Name())); err != nil {
				s.log.Error("an unfinished backup could not be removed", "err", err)
			}
		}
	}
}

// noProgress shows no progress.
type noProgress struct{}

func (noProgress) Copied(int64, int64) {}
func (noProgress) Checking(string)     {}
func (noProgress) Checked(Finding)     {}
