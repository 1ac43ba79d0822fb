package transfer

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/db"
)

// TestIdentify: a store takes a new id if a place has a backup with its id that it didn't
// begin, and says so once. Then it deletes none of the old id.
func TestIdentify(t *testing.T) {
	for name, test := range map[string]struct {
		began, existing []string
		copied          bool
	}{
		"an empty place":             {[]string{"19991231T200000"}, nil, false},
		"its own":                    {[]string{"19991231T200000"}, []string{"19991231T190000", "19991231T200000"}, false},
		"one begun and not uploaded": {[]string{"19991231T200000"}, []string{"19991231T190000"}, false},
		"its own, the clock ahead":   {[]string{"20100101T000000", "19991231T200000"}, []string{"20100101T000000", "19991231T200000"}, false},
		"another's":                  {[]string{"19991231T200000"}, []string{"19991231T190000", "19991231T200000", "19991231T200001"}, true},
		"another's, the clock ahead": {[]string{"19991231T200000"}, []string{"19991231T190000", "19991231T200000", "20100101T000000"}, true},
		"another's first":            {nil, []string{"19991231T190000", "19991231T200000", "19991231T210000"}, true},
	} {
		for _, in := range []string{"directory", "bucket"} {
			t.Run(name+" in a "+in, func(t *testing.T) {
				dir, staging := t.TempDir(), t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					remote := newRemote()
					var existing []string
					for _, stamp := range test.existing {
						existing = append(existing, snapshotAt(stamp))
					}
					schedule := Schedule{To: remote}
					if in == "directory" {
						schedule = Schedule{Dir: dir}
					}
					b := testScheduler(t, schedule)
					var log bytes.Buffer
					b.Log = slog.New(slog.NewTextHandler(&log, nil))
					stageIn(b, staging)
					for _, stamp := range test.began {
						began(b, snapshotAt(stamp))
					}
					for _, name := range existing {
						remote.files[name] = nil
						if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if in == "directory" {
						if err := b.readDir(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					stop := runScheduler(b)
					time.Sleep(5*time.Hour + time.Minute)
					stop()
					got := remote.names()
					if in == "directory" {
						got = names(t, dir)
					}
					own := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return !strings.Contains(name, testID) })
					said := strings.Count(log.String(), "new id")
					if !test.copied && (said > 0 || len(own) != b.Keep || len(got) != b.Keep) {
						t.Errorf("got %q, and %d messages, want %d with the old id", got, said, b.Keep)
					}
					if slices.Sort(existing); test.copied && (said != 1 || !slices.Equal(own, existing) || len(got) != len(existing)+b.Keep) {
						t.Errorf("got %q, and %d messages, want the %d old ones, %d with a new id, and one message", got, said, len(existing), b.Keep)
					}
				})
			})
		}
	}
}

// TestTwoCopies: of two copies that back up to the same place, one takes a new id, also if their
// backups are due at the same time. Each then keeps its own backups.
func TestTwoCopies(t *testing.T) {
	for name, test := range map[string]struct {
		directories bool
		after       time.Duration // how long after the first the second starts
	}{
		"at the same time":                   {},
		"by turns":                           {after: 25 * time.Minute},
		"with directories, by turns":         {directories: true, after: 25 * time.Minute},
		"with directories, at the same time": {directories: true},
	} {
		t.Run(name, func(t *testing.T) { twoCopies(t, test.directories, test.after) })
	}
}

func twoCopies(t *testing.T, directories bool, after time.Duration) {
	dirs := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		both := snapshotAt("19991231T233000") // before the store was copied
		remote := newRemote(both)
		remote.fail = func(context.Context) error { time.Sleep(10 * time.Second); return nil }
		var all []*Scheduler
		for i, dir := range dirs {
			schedule, existing := Schedule{To: remote}, []string{}
			if directories {
				schedule.Dir, existing = dir, []string{both}
			}
			b := testScheduler(t, schedule, existing...)
			b.Every += time.Duration(i) * 7 * time.Second // as NewScheduler does
			if !directories {
				stageIn(b, dir)
			}
			began(b, both)
			all = append(all, b)
			defer runScheduler(b)()
			time.Sleep(after)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		kept := map[string]int{}
		for _, name := range remote.names() {
			s, _ := ParseSnapshot(name)
			kept[s.Store]++
		}
		first, second := all[0].Identity.(*memoryIdentity).id, all[1].Identity.(*memoryIdentity).id
		if first == second || kept[first] < all[0].Keep || kept[second] < all[1].Keep {
			t.Errorf("got %q, want %d of each store, %s and %s", remote.names(), all[0].Keep, first, second)
		}
	})
}

// TestBackupWithFullStore: a backup is made in a directory even if the store's disk is full,
// and isn't taken for another store's.
func TestBackupWithFullStore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := testScheduler(t, Schedule{Dir: dir})
		b.Identity.(*memoryIdentity).err = db.ErrFull
		stop := runScheduler(b)
		time.Sleep(61 * time.Minute)
		stop()
		if got, want := names(t, dir), []string{snapshotAt("20000101T000000"), snapshotAt("20000101T010000")}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestCopiedFullStore: a copied store whose disk is full starts without a new id, makes no
// backups, and takes the id once there is space.
func TestCopiedFullStore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		others := snapshotAt("19991231T233000")
		if err := os.WriteFile(filepath.Join(dir, others), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b := testScheduler(t, Schedule{Dir: t.TempDir()})
		b.Dir = dir
		identity := b.Identity.(*memoryIdentity)
		identity.err = db.ErrFull
		if err := b.readDir(t.Context()); err != nil {
			t.Fatalf("a server with a full disk can't start: %v", err)
		}
		stop := runScheduler(b)
		time.Sleep(59 * time.Minute)
		stop()
		if got := names(t, dir); !slices.Equal(got, []string{others}) || b.Last().Failures == 0 {
			t.Errorf("got %q, and %d failures, want nothing new and some", got, b.Last().Failures)
		}
		identity.err = nil
		stop = runScheduler(b)
		time.Sleep(time.Minute)
		stop()
		if got := names(t, dir); len(got) != 2 || identity.id == testID {
			t.Errorf("got %q with the id %s, want another backup with a new id", got, identity.id)
		}
	})
}

// TestLeftovers: what killed processes staged of this store is removed, and nothing that a
// running one or a copy of the store staged.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "my.db.store.db")
	const none = 99_999_999 // is no process
	snapshot := "my.db.store-" + testID + "-20000101T000000Z.db"
	keep := []string{stagedPath(store, snapshot, os.Getppid()), stagedPath(store, snapshotAt("20000101T000000"), none), filepath.Join(dir, snapshot)}
	for _, path := range append([]string{stagedPath(store, snapshot, none), stagedPath(store, snapshot, none) + partialSuffix, stagedPath(store, snapshot, os.Getpid())}, keep...) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	removeLeftovers(store)
	var want []string
	for _, path := range keep {
		want = append(want, filepath.Base(path))
	}
	if slices.Sort(want); !slices.Equal(names(t, dir), want) {
		t.Errorf("got %q, want %q", names(t, dir), want)
	}
}
