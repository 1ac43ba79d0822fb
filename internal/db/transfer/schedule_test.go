package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/db"
)

const testID = "0a1b2c3d4e5f"

// memoryIdentity is an [Identity] in memory.
type memoryIdentity struct {
	mu     sync.Mutex
	id     string
	latest db.Begun
}

func (m *memoryIdentity) BackupID(context.Context) (string, db.Begun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id, m.latest, nil
}

func (m *memoryIdentity) BeginBackup(_ context.Context, at db.Begun) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.Directory.After(m.latest.Directory) {
		m.latest.Directory = at.Directory
	}
	if at.Remote.After(m.latest.Remote) {
		m.latest.Remote = at.Remote
	}
	return nil
}

func (m *memoryIdentity) RenewID(_ context.Context, old string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id == old {
		m.id, m.latest = fmt.Sprintf("%012x", rand.Uint64()>>16), db.Begun{}
	}
	return m.id, nil
}

// began makes a store remember that it began backups.
func began(b *Scheduler, names ...string) {
	for _, name := range names {
		if s, ok := ParseSnapshot(name); ok && s.Store == testID {
			b.BeginBackup(context.Background(), db.Begun{Directory: s.At, Remote: s.At})
		}
	}
}

// testScheduler returns a scheduler whose backups are small files in a directory, in the
// bubble's time.
func testScheduler(t *testing.T, schedule Schedule, existing ...string) *Scheduler {
	t.Helper()
	for _, name := range existing {
		if err := os.WriteFile(filepath.Join(schedule.Dir, name), []byte("a copy"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	schedule.Every, schedule.Keep = time.Hour, 3
	b := newScheduler(SchedulerConfig{Store: "/var/lib/store.db", Identity: &memoryIdentity{id: testID}, Schedule: schedule, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	b.copy = func(_ context.Context, file string) (int64, error) {
		return 6, os.WriteFile(file, []byte("a copy"), 0o600)
	}
	began(b, existing...)
	if schedule.Dir != "" {
		if err := b.readDir(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// runScheduler runs b until stop is called, which waits for it.
func runScheduler(b *Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestBackupSchedule: backups are made on time, counted from the newest one, in a directory and
// in a remote place, and only old backups of this store are deleted. Time starts at midnight
// on 1 January 2000.
func TestBackupSchedule(t *testing.T) {
	others := []string{
		"store-ffffffffffff-19990101T000000Z.db", "store-0a1b2c3d4e5f-20001301T000000Z.db",
		"store-0a1b2c3d4e5f-19990101T000000Z.db.bak", "store-19990101T000000Z.db", "store.db",
	}
	for name, test := range map[string]struct {
		existing []string
		after    time.Duration
		want     []string
	}{
		"none yet":           {nil, time.Minute, []string{"20000101T000000"}},
		"not due yet":        {[]string{"19991231T233000"}, 29 * time.Minute, []string{"19991231T233000"}},
		"due":                {[]string{"19991231T233000"}, 31 * time.Minute, []string{"19991231T233000", "20000101T003000"}},
		"more than are kept": {[]string{"19991230T000000"}, 3*time.Hour + time.Minute, []string{"20000101T010000", "20000101T020000", "20000101T030000"}},
		// The clock was ahead: what it made counts as the oldest.
		"from the future": {[]string{"20100101T000000", "20100102T000000", "20100103T000000"}, 61 * time.Minute,
			[]string{"20000101T000000", "20000101T010000", "20100103T000000"}},
		"the future is replaced": {[]string{"20100101T000000"}, 121 * time.Minute, []string{"20000101T000000", "20000101T010000", "20000101T020000"}},
	} {
		for _, in := range []string{"directory", "bucket"} {
			t.Run(name+" in a "+in, func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					existing, want := slices.Clone(others), slices.Clone(others)
					for _, stamp := range test.existing {
						existing = append(existing, snapshotAt(stamp))
					}
					for _, stamp := range test.want {
						want = append(want, snapshotAt(stamp))
					}
					remote := newRemote(existing...)
					var b *Scheduler
					if in == "directory" {
						b = testScheduler(t, Schedule{Dir: dir}, existing...)
					} else {
						b = testScheduler(t, Schedule{To: remote})
						began(b, existing...)
						stageIn(b, dir)
					}
					stop := runScheduler(b)
					time.Sleep(test.after)
					stop()
					got := names(t, dir)
					if in == "bucket" {
						if len(got) > 0 {
							t.Errorf("got %q next to the store, want nothing", got)
						}
						got = remote.names()
					}
					if slices.Sort(want); !slices.Equal(got, want) {
						t.Errorf("got %q, want %q", got, want)
					}
				})
			})
		}
	}
}

// TestBackupFails: a failed backup is tried again at the next scheduled time and
// deletes nothing. A backup that takes longer than the interval delays the next one.
func TestBackupFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := testScheduler(t, Schedule{Dir: dir})
		b.Keep = 1
		var calls atomic.Int64
		running := false
		ok := b.copy
		b.copy = func(ctx context.Context, file string) (int64, error) {
			if running {
				t.Error("two backups run at once")
			}
			running = true
			defer func() { running = false }()
			switch calls.Add(1) {
			case 2:
				return 0, errors.New("the disk is on fire")
			case 3:
				time.Sleep(90 * time.Minute)
			}
			return ok(ctx, file)
		}
		stop := runScheduler(b)
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if got, want := names(t, dir), []string{"store-0a1b2c3d4e5f-20000101T000000Z.db"}; !slices.Equal(got, want) || calls.Load() != 2 {
			t.Errorf("after the failed backup: got %q, %d calls, want %q and 2 calls", got, calls.Load(), want)
		}
		time.Sleep(140 * time.Minute) // the third began after 2 h and ends after 3 h 30 min
		stop()
		if got, want := names(t, dir), []string{"store-0a1b2c3d4e5f-20000101T033000Z.db"}; !slices.Equal(got, want) || calls.Load() != 4 {
			t.Errorf("after the slow backup: got %q, %d calls, want %q and 4 calls", got, calls.Load(), want)
		}
		if b.last.Failures != 1 || b.last.SizeBytes != 6 || b.last.At.Format(backupTime) != "20000101T033000Z" {
			t.Errorf("got the last backup %+v", b.last)
		}
	})
}
