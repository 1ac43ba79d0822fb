package server

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

	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/metrics"
)

// Backups describes backups that a server makes by itself, of a SQLite file.
type Backups struct {
	Dir   string        // where to; "" makes none
	Every time.Duration // at least a second
	Keep  int           // how many; older ones are deleted
}

// LastBackup is the newest backup that a server made.
type LastBackup struct {
	File     string
	At       time.Time // the start of the backup, which is its instant; zero if there is none
	Size     int64
	Failures int64 // since the server started
}

// backupTime is the time in the name of a backup, in UTC.
const backupTime = "20060102T150405Z"

// backupPoll is how often the clock is read: it may be set, and a machine may sleep.
const backupPoll = time.Minute

// backups makes backups on time, one after the other.
type backups struct {
	Backups
	prefix string // of the files' names
	now    func() time.Time
	copy   func(ctx context.Context, file string) (size int64, err error)
	log    *slog.Logger

	mu   sync.Mutex
	last LastBackup
}

// startBackups starts making backups, if they are configured.
func (s *Server) startBackups() error {
	if s.cfg.Backups.Dir == "" {
		return nil
	}
	store := sqliteFile(s.cfg.Database)
	b := &backups{Backups: s.cfg.Backups, now: s.cfg.Now, log: s.cfg.Log, prefix: backupPrefix(store)}
	b.copy = func(ctx context.Context, file string) (int64, error) {
		copied, err := transfer.Backup(ctx, sqlite.Files{}, store, file, silent{})
		return copied.Size, err
	}
	release, err := reserveBackupDir(b.Dir)
	if err != nil {
		return err
	}
	files, err := b.list()
	if err != nil {
		return errors.Join(fmt.Errorf("read the directory of backups: %w", err), release())
	}
	if len(files) > 0 {
		b.last = files[0]
	}
	s.backups = b
	if s.metrics != nil {
		s.metrics.WatchBackups(func() metrics.Backups {
			last := s.LastBackup()
			return metrics.Backups{At: last.At, Size: last.Size, Failures: last.Failures}
		})
	}
	stop := runInBackground(b.run)
	s.closers = append(s.closers, func() error {
		if err := within(s.deadline(), stop); err != nil {
			s.cfg.Log.Error("a backup could not be stopped", "err", err)
		}
		return release()
	})
	return nil
}

// LastBackup returns the newest backup. It has no File if there is none.
func (s *Server) LastBackup() LastBackup {
	if s.backups == nil {
		return LastBackup{}
	}
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	return s.backups.last
}

// reserveBackupDir refuses a directory that can't be written to or that another server
// uses, whose backups this one would take for its own.
func reserveBackupDir(dir string) (release func() error, err error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("--backup-dir: the directory %s does not exist: create it first", dir)
	case err != nil:
		return nil, fmt.Errorf("--backup-dir: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("--backup-dir: %s is not a directory", dir)
	}
	release, err = sqlite.Files{}.Reserve(filepath.Join(dir, "animalstore-backups"))
	if err != nil {
		return nil, fmt.Errorf("--backup-dir: %s cannot be written to, or another server makes its backups there: give each server its own directory (%w)", dir, err)
	}
	return release, nil
}

// backupPrefix begins the names of a store's backups.
func backupPrefix(store string) string {
	base := filepath.Base(store)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-"
}

// run makes backups until ctx ends. The first is due when the newest existing one is
// old enough, so that restarts don't add any.
func (b *backups) run(ctx context.Context) {
	attempted := b.last.At
	for {
		now := b.now()
		if attempted.After(now) { // the clock was set back
			attempted = now
		}
		wait := attempted.Add(b.Every).Sub(now)
		if attempted.IsZero() || wait <= 0 {
			attempted = now
			b.make(ctx, now)
			wait = b.Every - b.now().Sub(now)
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

// make makes one backup and deletes what is too old.
func (b *backups) make(ctx context.Context, at time.Time) {
	b.removePartial()
	file := filepath.Join(b.Dir, b.prefix+at.UTC().Format(backupTime)+".db")
	size, err := b.copy(ctx, file)
	switch {
	case ctx.Err() != nil && err != nil:
		b.log.Info("backup stopped, because the server is stopping", "file", file)
		return
	case err != nil:
		b.mu.Lock()
		b.last.Failures++
		b.mu.Unlock()
		b.log.Error("backup failed: trying again at the next time", "file", file, "next", at.Add(b.Every).UTC(), "err", err)
		return
	}
	b.mu.Lock()
	b.last = LastBackup{File: file, At: at, Size: size, Failures: b.last.Failures}
	b.mu.Unlock()
	b.log.Info("backed up", "file", file, "bytes", size, "took_ms", b.now().Sub(at).Milliseconds())
	if err := b.prune(); err != nil {
		b.log.Error("old backups could not be deleted", "dir", b.Dir, "err", err)
	}
}

// prune deletes all but the newest backups.
func (b *backups) prune() error {
	files, err := b.list()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files[min(b.Keep, len(files)):] {
		errs = append(errs, os.Remove(f.File))
	}
	return errors.Join(errs...)
}

// list returns the backups of this store, newest first. It knows them by their names,
// and ignores whatever else is there.
func (b *backups) list() ([]LastBackup, error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return nil, err
	}
	var files []LastBackup
	for _, e := range entries {
		at, ok := b.timeOf(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was just removed
		}
		files = append(files, LastBackup{File: filepath.Join(b.Dir, e.Name()), At: at, Size: info.Size()})
	}
	slices.SortFunc(files, func(x, y LastBackup) int { return cmp.Or(y.At.Compare(x.At), strings.Compare(x.File, y.File)) })
	return files, nil
}

var backupStamp = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z$`)

// timeOf returns the time in the name of a backup. It reports false for other names.
func (b *backups) timeOf(name string) (time.Time, bool) {
	rest, ours := strings.CutPrefix(name, b.prefix)
	stamp, complete := strings.CutSuffix(rest, ".db")
	if !ours || !complete || !backupStamp.MatchString(stamp) {
		return time.Time{}, false
	}
	at, err := time.Parse(backupTime, stamp)
	return at, err == nil
}

// removePartial removes what a killed server left of a backup.
func (b *backups) removePartial() {
	entries, _ := os.ReadDir(b.Dir) // the backup itself will fail and say why
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".partial")
		if _, ours := b.timeOf(name); ok && ours {
			if err := transfer.RemovePartial(filepath.Join(b.Dir, name)); err != nil {
				b.log.Error("an unfinished backup could not be removed", "err", err)
			}
		}
	}
}

// silent shows no progress.
type silent struct{}

func (silent) Copied(int64, int64)      {}
func (silent) Checking(string)          {}
func (silent) Checked(transfer.Finding) {}
