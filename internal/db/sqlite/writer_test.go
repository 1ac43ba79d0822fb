package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// hold keeps the writer busy until release is called, so that the writes queued until
// then become one batch.
func hold(t *testing.T, d *DB) (release func()) {
	t.Helper()
	begun, gate := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- d.writer.do(context.Background(), func(*sqlite.Conn) error {
			close(begun)
			<-gate
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(gate)
		if err := <-held; err != nil {
			t.Errorf("the write that held the writer: %v", err)
		}
	})
}

// queued waits until n writes are queued behind the one that holds the writer.
func queued(t *testing.T, d *DB, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); d.writer.queued() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d writes are queued, want %d", d.writer.queued(), n)
		}
	}
}

func insertNamed(name string, status int) func(*sqlite.Conn) error {
	return func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "INSERT INTO pets (name, category_id, status, folded_name) VALUES (?1, 1, ?2, ?1)", &sqlitex.ExecOptions{Args: []any{name, status}})
	}
}

func names(t *testing.T, d *DB) map[string]bool {
	t.Helper()
	pets, err := d.Pets(t.Context(), db.PetQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, p := range pets {
		all[p.Name] = true
	}
	return all
}

func TestOneBadWriteFailsAlone(t *testing.T) {
	errBad := errors.New("bad")
	bad := map[string]func(*sqlite.Conn) error{
		"breaks a check":       insertNamed("bad", 7),
		"fails after a change": func(c *sqlite.Conn) error { return errors.Join(insertNamed("bad", 0)(c), errBad) },
		"fails in its second change": func(c *sqlite.Conn) error {
			return errors.Join(insertNamed("bad", 0)(c), insertNamed("bad too", -1)(c))
		},
		"isn't SQL": func(c *sqlite.Conn) error { return sqlitex.Execute(c, "FROB THE PETS", nil) },
	}
	for name, run := range bad {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
			release := hold(t, d)
			defer release()
			const writes, badOne = 11, 5
			errs := make([]error, writes)
			var wg sync.WaitGroup
			for i := range writes {
				wg.Go(func() {
					if i == badOne {
						errs[i] = d.writer.do(t.Context(), run)
					} else {
						errs[i] = d.writer.do(t.Context(), insertNamed(fmt.Sprint(i), 0))
					}
				})
				queued(t, d, i+1) // in this order
			}
			release()
			wg.Wait()
			stored := names(t, d)
			for i, err := range errs {
				switch {
				case i == badOne && err == nil:
					t.Error("the bad write returned no error")
				case i != badOne && err != nil:
					t.Errorf("good write %d: %v", i, err)
				case i != badOne && !stored[fmt.Sprint(i)]:
					t.Errorf("good write %d is not stored", i)
				}
			}
			if stored["bad"] || stored["bad too"] || len(stored) != writes-1 {
				t.Errorf("stored are %v, want the %d good ones", stored, writes-1)
			}
		})
	}
}

// TestOneProcessorSharesCommits: on one processor too, callers that write at the same time
// share their commits.
func TestOneProcessorSharesCommits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true, NoSync: true})
	insert := func() {
		if err := d.writer.do(t.Context(), insertNamed("any", 0)); err != nil {
			t.Error(err)
		}
	}
	const callers, rounds = 16, 50
	commits := int64(0)
	for range rounds {
		insert()
		before := d.Stats().Commits
		var wg sync.WaitGroup
		for range callers {
			wg.Go(insert)
		}
		wg.Wait()
		commits += d.Stats().Commits - before
	}
	if commits > callers*rounds/4 {
		t.Errorf("%d writes of %d callers at a time took %d commits, want at most a quarter as many", callers*rounds, callers, commits)
	}
}

// TestFailedCommitFailsTheBatch: if a commit fails, every write in it fails, and the
// writer continues with the next batch.
func TestFailedCommitFailsTheBatch(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	release := hold(t, d)
	defer release()
	const writes = 5
	errs := make([]error, writes)
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() {
			errs[i] = d.writer.do(t.Context(), func(c *sqlite.Conn) error {
				if i == 2 { // a broken reference that is only checked on commit
					return sqlitex.ExecuteScript(c, "PRAGMA defer_foreign_keys = ON; INSERT INTO key_secrets VALUES (x'00', 99, 0)", nil)
				}
				return insertNamed(fmt.Sprint(i), 0)(c)
			})
		})
		queued(t, d, i+1)
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			t.Errorf("write %d returned nil, but its commit failed", i)
		}
	}
	if got := names(t, d); len(got) != 0 {
		t.Errorf("stored are %v, want nothing", got)
	}
	if err := d.writer.do(t.Context(), insertNamed("next", 0)); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

func TestWriteWhoseContextEnds(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	release := hold(t, d)
	defer release()

	// If its context ends while it is queued, it doesn't run.
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- d.writer.do(ctx, insertNamed("cancelled early", 0)) }()
	queued(t, d, 1)
	cancel()
	release()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose context ended in the queue: %v, want context.Canceled", err)
	}

	// If its context ends after it began, it runs to completion and returns nil.
	ctx, cancel = context.WithCancel(t.Context())
	err := d.writer.do(ctx, func(c *sqlite.Conn) error {
		cancel()
		return insertNamed("cancelled late", 0)(c)
	})
	if err != nil {
		t.Errorf("a write whose context ended after it began: %v, want nil", err)
	}
	if got := names(t, d); len(got) != 1 || !got["cancelled late"] {
		t.Errorf("stored are %v, want only the one that began", got)
	}
}

// expiring is a context whose deadline passes when the test says so: on a busy machine, a
// write may not even have begun within any fixed time.
type expiring struct {
	context.Context
	done chan struct{}
}

func newExpiring() expiring { return expiring{context.Background(), make(chan struct{})} }

func (e expiring) expire() { close(e.done) }

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestWriteAtItsDeadline: a disk can hang, so a caller is answered at its deadline. It is
// told that nothing was changed only if that is true.
func TestWriteAtItsDeadline(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	hanging, disk := make(chan struct{}), make(chan struct{})
	d.writer.conn.SetAuthorizer(sqlite.AuthorizeFunc(func(action sqlite.Action) sqlite.AuthResult {
		if action.Operation() == "COMMIT" { // its statement is prepared again
			close(hanging)
			<-disk
		}
		return sqlite.AuthResultOK
	}))
	ctx := newExpiring()
	write := func(name string) chan error {
		result := make(chan error, 1)
		go func() { result <- d.writer.do(ctx, insertNamed(name, 0)) }()
		return result
	}
	committing := write("committing")
	<-hanging
	behind := write("behind")
	queued(t, d, 1)
	ctx.expire()
	returned := func(result chan error) error {
		select {
		case err := <-result:
			return err
		case <-time.After(time.Minute):
			return errors.New("it keeps its caller after the deadline")
		}
	}
	if err := returned(committing); !errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write whose commit hangs: %v, want that its outcome is unknown", err)
	}
	if err := returned(behind); errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write behind it: %v, want that its deadline has passed", err)
	}
	d.writer.conn.SetAuthorizer(nil) // the goroutine is in the old one
	close(disk)
	if err := d.writer.do(t.Context(), insertNamed("after", 0)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, d); !got["committing"] || got["behind"] || !got["after"] {
		t.Errorf("stored are %v, want the one that was committing, and the one after it", got)
	}
}

// TestWriteHangsAtItsDeadline: the disk can also hang before the commit, within a write.
func TestWriteHangsAtItsDeadline(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	hanging, disk := make(chan struct{}), make(chan struct{})
	ctx := newExpiring()
	returned := make(chan error, 1)
	go func() {
		result, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (string, error) {
			close(hanging)
			<-disk
			return "late", insertNamed("hanging", 0)(c)
		})
		if result != "" {
			t.Errorf("the result is %q, want none", result)
		}
		returned <- err
	}()
	<-hanging
	ctx.expire()
	select {
	case err := <-returned:
		if !errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that hangs: %v, want that its outcome is unknown", err)
		}
	case <-time.After(time.Minute):
		t.Error("a write that hangs keeps its caller after the deadline")
	}
	close(disk)
	if err := d.writer.do(t.Context(), insertNamed("after", 0)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, d); !got["hanging"] || !got["after"] {
		t.Errorf("stored are %v, want both", got)
	}
}

func TestCloseFinishesEveryWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	release := hold(t, d)
	const waiting = 20
	errs := make([]error, waiting)
	var wg sync.WaitGroup
	for i := range waiting {
		wg.Go(func() { errs[i] = d.writer.do(t.Context(), insertNamed(fmt.Sprint(i), 0)) })
	}
	queued(t, d, waiting)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	release()
	wg.Wait()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	stored := names(t, mustOpen(t, path, Options{}))
	for i, err := range errs {
		if got := stored[fmt.Sprint(i)]; got != (err == nil) {
			t.Errorf("write %d returned %v, but stored is %v", i, err, got)
		}
	}
}

func TestAfterCloseEverythingFails(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// With a context that never ends, so that a call can't rely on it.
	for name, call := range map[string]func(context.Context) error{
		"CreatePet": func(ctx context.Context) error {
			_, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: "late", CategoryID: 1}, nil)
			return err
		},
		"Key":  func(ctx context.Context) error { _, err := d.Key(ctx, 1); return err },
		"Pets": func(ctx context.Context) error { _, err := d.Pets(ctx, db.PetQuery{Limit: 1}); return err },
		"Ping": d.Ping,
	} {
		done := make(chan error, 1)
		go func() { done <- call(context.Background()) }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s after Close returned nil", name)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s after Close hangs", name)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestPanicsLeaveNoReaderBehind: after a panic a reader could be stuck in an old
// state of the store, which every later user of the connection would see.
func TestPanicsLeaveNoReaderBehind(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	create := func() int64 {
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pet.ID
	}
	create()
	forEachReader(d, func() {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			d.read(t.Context(), func(c *sqlite.Conn) error {
				stmt, err := c.Prepare("SELECT id FROM pets")
				if err != nil {
					t.Fatal(err)
				}
				stmt.Step()
				panic("half way")
			})
		}()
	})
	id := create()
	forEachReader(d, func() {
		if _, err := d.Pet(t.Context(), id); err != nil {
			t.Errorf("got %v, want the pet that was just added", err)
		}
	})
}

// TestNoWriteIsLeftBehind queues writes just when others end, without later writes
// that would take them along.
func TestNoWriteIsLeftBehind(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	errRefused := errors.New("refused") // nothing to commit, so it is quick
	refuse := func(*sqlite.Conn) error { return errRefused }
	results := make(chan error, 3)
	late := time.NewTimer(time.Hour)
	for round := range 20_000 {
		for range cap(results) {
			go func() { results <- d.writer.do(t.Context(), refuse) }()
		}
		late.Reset(30 * time.Second)
		for range cap(results) {
			select {
			case err := <-results:
				if err != errRefused {
					t.Fatalf("got %v, want %v", err, errRefused)
				}
			case <-late.C:
				t.Fatalf("a write of round %d did not return", round)
			}
		}
	}
}

// TestForeignReaderDoesNotStallWrites: another program may read the file for as long
// as it likes, which keeps the WAL from restarting.
func TestForeignReaderDoesNotStallWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	d.writer.force, d.writer.forceAt = checkpointPages, checkpointPages // wait for readers early
	foreign, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := sqlitex.Execute(foreign, "BEGIN", nil); err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.Execute(foreign, "SELECT count(*) FROM pets", nil); err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("x", animalstore.MaxNameLength)
	begun := time.Now()
	for range 600 {
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
		// Waiting at every checkpoint would take several minutes.
		if took := time.Since(begun); took > 2*time.Minute {
			t.Fatalf("the writes take more than %v, want them not to wait for the reader", took)
		}
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil || wal.Size() < 2*checkpointPages*4096 {
		t.Errorf("the WAL has %d bytes (%v), want enough for the reader to matter", wal.Size(), err)
	}
	if d.writer.forceAt == checkpointPages {
		t.Error("no checkpoint waited for the reader")
	}
	if err := d.writer.do(t.Context(), func(c *sqlite.Conn) error { wantBusyTimeout(t, "the writer after a checkpoint", c); return nil }); err != nil {
		t.Error(err)
	}
}

// TestFailedWritesAreNoCommits: the metrics count what was committed.
func TestFailedWritesAreNoCommits(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	before := d.Stats()
	refused := errors.New("refused")
	if err := d.writer.do(t.Context(), func(*sqlite.Conn) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("got error %v, want %v", err, refused)
	}
	if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	after := d.Stats()
	if commits, writes := after.Commits-before.Commits, after.Writes-before.Writes; commits != 1 || writes != 1 {
		t.Errorf("got %d commits of %d writes, want 1 of 1", commits, writes)
	}
}
