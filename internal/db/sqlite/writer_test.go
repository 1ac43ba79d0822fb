package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"

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
	testenv.Eventually(t, fmt.Sprint(n, " writes are queued"), func() bool { return d.writer.queued() >= n })
}

func insertNamed(name string, status int) func(*sqlite.Conn) error {
	return func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "INSERT INTO pets (name, category_id, status) VALUES (?1, 1, ?2)", &sqlitex.ExecOptions{Args: []any{name, status}})
	}
}

func names(t *testing.T, d *DB) map[string]bool {
	t.Helper()
	pets, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1000})
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
			d := newStore(t)
			const writes, badOne = 5, 2
			runs := make([]func(context.Context) error, writes)
			for i := range runs {
				runs[i] = func(ctx context.Context) error { return d.writer.do(ctx, insertNamed(fmt.Sprint(i), 0)) }
			}
			runs[badOne] = func(ctx context.Context) error { return d.writer.do(ctx, run) }
			errs := batch(t, d, runs...)
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

// TestFailedCommitFailsTheBatch: if a commit fails, every write in it fails, and the
// writer continues with the next batch.
func TestFailedCommitFailsTheBatch(t *testing.T) {
	d := newStore(t)
	insert := func(ctx context.Context) error { return d.writer.do(ctx, insertNamed("good", 0)) }
	broken := func(ctx context.Context) error {
		return d.writer.do(ctx, func(c *sqlite.Conn) error { // a broken reference that is only checked on commit
			return sqlitex.ExecuteScript(c, "PRAGMA defer_foreign_keys = ON; INSERT INTO key_secrets VALUES (x'00', 99, 0)", nil)
		})
	}
	errs := batch(t, d, insert, broken, insert)
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
	d := newStore(t)
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

// TestWriteAtItsDeadline: a disk can hang, so a call returns at its deadline. It is
// told that nothing was changed only if that is true.
func TestWriteAtItsDeadline(t *testing.T) {
	t.Parallel()
	d := newStore(t)
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
	if err := <-committing; !errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write whose commit hangs: %v, want that its outcome is unknown", err)
	}
	if err := <-behind; errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
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
	d := newStore(t)
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
	if err := <-returned; !errors.Is(err, db.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that hangs: %v, want that its outcome is unknown", err)
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
	d := newStore(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// With a context that never ends, so that a call can't rely on it.
	for name, call := range map[string]func(context.Context) error{
		"CreatePet": func(ctx context.Context) error {
			_, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: "late", CategoryID: 1}, nil)
			return err
		},
		"Key": func(ctx context.Context) error { _, err := d.Key(ctx, 1); return err },
		"Pets": func(ctx context.Context) error {
			_, err := d.Pets(ctx, animalstore.PetQuery{}, db.Page{Limit: 1})
			return err
		},
		"Ping": d.Ping,
	} {
		if err := call(context.Background()); err == nil {
			t.Errorf("%s after Close returned nil", name)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestPanicsLeaveNoReaderBehind: after a panic a reader could be stuck in an old
// state of the store, which every later user of the connection would see.
func TestPanicsLeaveNoReaderBehind(t *testing.T) {
	d := newStore(t)
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
