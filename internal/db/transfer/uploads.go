package transfer

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"animalstore"
)

// A failed backup or upload is tried again after uploadRetry, then after twice as long, and
// so on up to uploadRetryMax, but at least once per interval of the schedule.
const (
	uploadRetry    = time.Minute
	uploadRetryMax = time.Hour
)

// uploads is the state of the loop that fills the remote place.
type uploads struct {
	stage  func(ctx context.Context, id string, at time.Time) (Staged, error)
	listed bool      // the newest backup in the remote place is known
	newest time.Time // when that one began
	staged Staged    // waits to be uploaded; zero if there is none
}

// Remote returns the newest backup in the remote place, and whether uploads fail. It is nil
// without a remote place.
func (s *Scheduler) Remote() *animalstore.RemoteBackup {
	if s.To == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	remote := s.remote
	return &remote
}

// runUploads uploads backups until ctx ends.
func (s *Scheduler) runUploads(ctx context.Context) {
	failed := 0
	for {
		wait, err := s.uploadDue(ctx)
		made := s.made
		switch {
		case ctx.Err() != nil:
			s.removeStaged()
			return
		case err == nil:
			failed, wait = 0, min(wait, backupPoll)
		default:
			wait, made = min(uploadRetry<<min(failed, 6), uploadRetryMax, s.Every), nil
			failed++
			s.uploadFailed(err, wait)
		}
		select {
		case <-ctx.Done():
		case <-made:
		case <-time.After(wait):
		}
	}
}

// uploadDue uploads the backup that is due, if any, and returns when to look again.
func (s *Scheduler) uploadDue(ctx context.Context) (wait time.Duration, err error) {
	if !s.uploads.listed {
		if err := s.listRemote(ctx); err != nil {
			return 0, fmt.Errorf("list the backups: %w", err)
		}
	}
	next, path, wait, err := s.nextUpload(ctx)
	if err != nil || path == "" {
		return wait, err
	}
	began := s.Now()
	uploaded, err := s.upload(ctx, next, path)
	if err != nil {
		return 0, err
	}
	s.removeStaged()
	s.uploads.newest = next.At
	s.mu.Lock()
	s.remote = animalstore.RemoteBackup{At: animalstore.At(next.At), SizeBytes: next.Size, Failures: s.remote.Failures}
	if s.unsent.Name == next.Name {
		s.unsent = Snapshot{}
	}
	s.mu.Unlock()
	s.Log.Info("uploaded a backup", "name", uploaded.Name, "to", s.To, "bytes", next.Size, "took_ms", s.Now().Sub(began).Milliseconds())
	if err := s.prune(ctx, s.To, uploaded); err != nil {
		s.Log.Error("old backups could not be deleted", "in", s.To, "err", err)
	}
	return 0, nil
}

// upload uploads a backup, under the id that the store has now: it may be new.
func (s *Scheduler) upload(ctx context.Context, next Snapshot, path string) (Snapshot, error) {
	id, _, err := s.identify(ctx, s.To)
	if err != nil {
		return next, fmt.Errorf("list the backups: %w", err)
	}
	if id != next.Store {
		next.Store, next.Name = id, SnapshotName(s.Store, id, next.At)
	}
	if err := s.begin(ctx, s.To, next.At); err != nil {
		return next, err
	}
	return next, Upload(ctx, s.To, next, path, nil)
}

// listRemote finds the newest backup in the remote place, and forgets the one in the
// directory unless it is newer.
func (s *Scheduler) listRemote(ctx context.Context) error {
	_, found, err := s.identify(ctx, s.To)
	if err != nil {
		return err
	}
	s.uploads.listed = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remote.Failing = false
	if last := newest(found); last.Name != "" {
		s.uploads.newest = last.At
		s.remote.At, s.remote.SizeBytes = animalstore.At(last.At), last.Size
	}
	if !s.unsent.At.After(s.uploads.newest) {
		s.unsent = Snapshot{}
	}
	return nil
}

// nextUpload returns the next backup to upload: the newest in the directory, if there is
// one, and otherwise one that it makes when it is due. path is "" if there is none yet.
func (s *Scheduler) nextUpload(ctx context.Context) (next Snapshot, path string, wait time.Duration, err error) {
	if s.Dir != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.unsent.Name == "" {
			return Snapshot{}, "", backupPoll, nil
		}
		return s.unsent, filepath.Join(s.Dir, s.unsent.Name), 0, nil
	}
	u, now := &s.uploads, s.Now()
	if u.newest.After(now) { // the clock was set back
		u.newest = now
	}
	if wait := u.newest.Add(s.Every).Sub(now); !u.newest.IsZero() && wait > 0 {
		return Snapshot{}, "", wait, nil
	}
	if u.staged.gone() || now.Sub(u.staged.At) >= s.Every { // a newer one replaces it
		s.removeStaged()
		id, _, err := s.BackupID(ctx)
		if err != nil {
			return Snapshot{}, "", 0, err
		}
		if u.staged, err = u.stage(ctx, id, now); err != nil {
			return Snapshot{}, "", 0, err
		}
	}
	return u.staged.Snapshot, u.staged.Path, 0, nil
}

func (s *Scheduler) removeStaged() {
	if err := s.uploads.staged.Remove(); err != nil {
		s.Log.Error("the local copy of an uploaded backup could not be removed", "err", err)
	}
	s.uploads.staged = Staged{}
}

func (s *Scheduler) uploadFailed(err error, wait time.Duration) {
	s.mu.Lock()
	s.remote.Failures++
	s.remote.Failing = true
	s.mu.Unlock()
	s.Log.Error("backup to another machine failed", "to", s.To, "retry", s.Now().Add(wait).UTC(), "err", err)
}
