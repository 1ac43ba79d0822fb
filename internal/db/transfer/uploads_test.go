package transfer

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
)

// memoryRemote is a [Remote] in memory. fail, unless it is nil, is called before a Put.
type memoryRemote struct {
	mu         sync.Mutex
	files      map[string][]byte
	unfinished []string
	down       bool // List fails
	fail       func(ctx context.Context) error
	puts       []time.Time
}

func newRemote(names ...string) *memoryRemote {
	r := &memoryRemote{files: map[string][]byte{}}
	for _, name := range names {
		r.files[name] = []byte("a copy")
	}
	return r
}

// change changes fields while the scheduler may read them.
func (r *memoryRemote) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *memoryRemote) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.files))
}

func (r *memoryRemote) List(context.Context) ([]File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return nil, errors.New("down")
	}
	var files []File
	for name, content := range r.files {
		files = append(files, File{name, int64(len(content))})
	}
	return files, nil
}

func (r *memoryRemote) Put(ctx context.Context, name, file string, _ func(int64)) error {
	r.mu.Lock()
	r.puts = append(r.puts, time.Now())
	fail := r.fail
	r.mu.Unlock()
	if fail != nil {
		if err := fail(ctx); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(file)
	if err == nil {
		r.mu.Lock()
		r.files[name] = content
		r.mu.Unlock()
	}
	return err
}

func (r *memoryRemote) Open(context.Context, string, int64, string) (Content, error) {
	return Content{}, errors.ErrUnsupported
}

func (r *memoryRemote) Delete(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, name)
	return nil
}

func (r *memoryRemote) Unfinished(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.unfinished), nil
}

func (r *memoryRemote) Abort(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfinished = slices.DeleteFunc(r.unfinished, func(n string) bool { return n == name })
	return nil
}

// stageIn makes a scheduler stage small files in a directory, and counts them.
func stageIn(b *Scheduler, dir string) (staged *atomic.Int32) {
	staged = new(atomic.Int32)
	b.uploads.stage = func(_ context.Context, id string, at time.Time) (Staged, error) {
		staged.Add(1)
		s, _ := ParseSnapshot(SnapshotName("store.db", id, at))
		s.Size = 6
		path := filepath.Join(dir, s.Name+".upload")
		return Staged{Snapshot: s, Path: path}, os.WriteFile(path, []byte("a copy"), 0o600)
	}
	return staged
}

func snapshotAt(stamp string) string { return "store-" + testID + "-" + stamp + "Z.db" }

// TestUploadFails: a failed upload of the same backup is tried again after a minute, then
// two, and so on, and the status says so.
func TestUploadFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		remote := newRemote()
		remote.down, remote.fail = true, func(context.Context) error { return errors.New("no space left") }
		b := testScheduler(t, Schedule{To: remote})
		b.Every = 24 * time.Hour
		staged := stageIn(b, dir)
		stop := runScheduler(b)
		defer stop()
		synctest.Wait()
		if got := *b.Remote(); got != (animalstore.RemoteBackup{Failures: 1, Failing: true}) || staged.Load() != 0 {
			t.Errorf("without a list: got %+v and %d staged backups, want a failure and none", got, staged.Load())
		}
		remote.change(func() { remote.down = false })
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		var after []time.Duration
		for _, at := range remote.puts {
			after = append(after, at.Sub(began)/time.Minute)
		}
		if want := []time.Duration{1, 3, 7, 15, 31, 63, 123, 183}; !slices.Equal(after, want) || staged.Load() != 1 {
			t.Errorf("got uploads of %d backups after %d minutes, want one after %d", staged.Load(), after, want)
		}
		remote.change(func() { remote.fail = nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := *b.Remote(); got.Failing || got.Failures != 9 || got.At.Format(backupTime) != "20000101T000100Z" || got.SizeBytes != 6 {
			t.Errorf("once it works: got %+v", got)
		}
		if left := names(t, dir); len(left) > 0 {
			t.Errorf("got %q next to the store, want nothing", left)
		}
	})
}

// TestStagedGone: a backup whose file was removed while it waits to be uploaded is made again.
// A command that backs up the same store takes it for a leftover.
func TestStagedGone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		remote := newRemote()
		remote.fail = func(context.Context) error { return errors.New("no space left") }
		b := testScheduler(t, Schedule{To: remote})
		b.Every = 24 * time.Hour
		staged := stageIn(b, dir)
		stop := runScheduler(b)
		defer stop()
		synctest.Wait()
		for _, name := range names(t, dir) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		remote.change(func() { remote.fail = nil })
		time.Sleep(uploadRetry)
		synctest.Wait()
		if want := []string{snapshotAt("20000101T000100")}; !slices.Equal(remote.names(), want) || staged.Load() != 2 {
			t.Errorf("got %q of %d staged backups, want %q", remote.names(), staged.Load(), want)
		}
	})
}

// TestStageFails: a backup that can't be made is tried again like a failed upload.
func TestStageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := testScheduler(t, Schedule{To: newRemote()})
		var after []time.Duration
		b.uploads.stage = func(context.Context, string, time.Time) (Staged, error) {
			after = append(after, time.Since(began)/time.Minute)
			return Staged{}, errors.New("the disk is full")
		}
		stop := runScheduler(b)
		defer stop()
		time.Sleep(150 * time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123}; !slices.Equal(after, want) || b.Remote().Failures != 8 || !b.Remote().Failing {
			t.Errorf("got attempts after %d minutes and %+v, want %d", after, *b.Remote(), want)
		}
	})
}

// TestUploadsOfDirectory: with a directory, its newest backup is uploaded. An upload that
// hangs doesn't delay the next backup there, and shutting down doesn't wait for it.
func TestUploadsOfDirectory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		remote := newRemote(snapshotAt("19991231T200000"))
		b := testScheduler(t, Schedule{Dir: dir, To: remote}, snapshotAt("19991231T203000"), snapshotAt("19991231T233000"))
		began(b, remote.names()...)
		var hang atomic.Bool
		remote.fail = func(ctx context.Context) error {
			if !hang.Load() {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		stop := runScheduler(b)
		synctest.Wait()
		if want := []string{snapshotAt("19991231T200000"), snapshotAt("19991231T233000")}; !slices.Equal(remote.names(), want) {
			t.Errorf("at first: got %q, want %q", remote.names(), want)
		}
		time.Sleep(30*time.Minute + time.Second)
		synctest.Wait()
		if want := []string{snapshotAt("19991231T200000"), snapshotAt("19991231T233000"), snapshotAt("20000101T003000")}; !slices.Equal(remote.names(), want) {
			t.Errorf("after half an hour: got %q, want %q", remote.names(), want)
		}
		hang.Store(true)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got, want := names(t, dir), []string{snapshotAt("20000101T013000"), snapshotAt("20000101T023000"), snapshotAt("20000101T033000")}; !slices.Equal(got, want) || len(remote.names()) != 3 {
			t.Errorf("while an upload hangs: got %q and %q there, want %q", got, remote.names(), want)
		}
		stop()
	})
}

// TestAbortUnfinished: an upload first aborts what earlier uploads of the same store left.
func TestAbortUnfinished(t *testing.T) {
	remote := newRemote()
	now, newer, other := snapshotAt("20000101T000000"), snapshotAt("20000101T000001"), "store-ffffffffffff-19990101T000000Z.db"
	remote.unfinished = []string{snapshotAt("19990101T000000"), now, newer, other, "film.mp4"}
	file := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(file, []byte("a copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := ParseSnapshot(now)
	if err := Upload(t.Context(), remote, s, file, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{newer, other, "film.mp4"}; !slices.Equal(remote.unfinished, want) {
		t.Errorf("got %q left unfinished, want %q", remote.unfinished, want)
	}
}
