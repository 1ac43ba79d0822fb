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
