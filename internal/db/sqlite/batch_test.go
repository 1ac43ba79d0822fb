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

	"zombiezen.com/go/sqlite"
)

// batch runs writes in one transaction, in this order, and returns their errors.
func batch(t *testing.T, d *DB, writes ...func(context.Context) error) []error {
	t.Helper()
	release := hold(t, d)
	defer release()
	errs := make([]error, len(writes))
	var wg sync.WaitGroup
	for i, write := range writes {
		wg.Go(func() { errs[i] = write(t.Context()) })
		queued(t, d, i+1)
	}
	release()
	wg.Wait()
	return errs
}

func create(d *DB, name string, category int64, retry *db.Idempotency) func(context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: category}, retry)
		return err
	}
}

// TestHalfway: creates of pets and what is stored for webhooks have no savepoints. One that
// is refused changes nothing and leaves the others alone. If SQLite fails halfway, only
// that write fails too.
func TestHalfway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	retry := func(body byte) *db.Idempotency {
		return &db.Idempotency{KeyID: 1, Operation: "pets", Token: "a", BodyHash: [32]byte{body}, At: animalstore.AtMilli(1)}
	}
	if err := create(d, "first", 1, retry(1))(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := batch(t, d, create(d, "good", 1, nil), create(d, "refused", 1, retry(2)), create(d, "good too", 1, nil))
	if coded := (*animalstore.Error)(nil); errs[0] != nil || errs[2] != nil || !errors.As(errs[1], &coded) {
		t.Errorf("got %v, want only the second refused", errs)
	}
	wantStored(t, d, "first", "good", "good too")

	script(t, path, `CREATE TRIGGER halfway BEFORE INSERT ON events WHEN new.data LIKE '%"bad"%' BEGIN SELECT RAISE(ABORT, 'halfway'); END;
		CREATE TRIGGER damaged BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'damaged'); END`)
	if _, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "whsec_b25l", animalstore.AtMilli(1)); err != nil {
		t.Fatal(err)
	}
	if err := create(d, "to deliver", 1, nil)(t.Context()); err != nil {
		t.Fatal(err)
	}
	dispatch := func(ctx context.Context) error {
		_, err := d.DispatchEvents(ctx, animalstore.AtMilli(1), 100)
		return err
	}
	errs = batch(t, d, create(d, "before", 1, nil), create(d, "bad", 1, nil), dispatch, create(d, "refused", 1, retry(2)), create(d, "after", 1, nil))
	for i, bad := range []bool{false, true, true, true, false} {
		if failed := errs[i] != nil; failed != bad {
			t.Errorf("write %d of a batch in which SQLite failed returned %v", i, errs[i])
		}
	}
	wantStored(t, d, "first", "good", "good too", "to deliver", "before", "after")
	events, _, err := d.Events(t.Context(), db.EventQuery{Limit: 100})
	if got := fmt.Sprint(len(events), err); got != "8 <nil>" { // six pets, a category, a webhook
		t.Errorf("got %s events, want 8", got)
	}
}

// TestAbandonedBeforeRepeat: a write that was abandoned isn't run again, because the caller
// may use what it sets.
func TestAbandonedBeforeRepeat(t *testing.T) {
	d := newStore(t)
	var runs [4]int
	newWrite := func(i int, f func() error) *write {
		run := func(*sqlite.Conn) error { runs[i]++; return f() }
		return &write{ctx: t.Context(), run: run, noSavepoint: true, done: make(chan struct{})}
	}
	done := newWrite(0, func() error { return nil })
	refused := newWrite(1, func() error { return animalstore.Errorf(animalstore.PetNotAvailable, "no") })
	halfway := newWrite(2, func() error {
		if runs[2] > 1 {
			return errors.New("again")
		}
		if _, err := d.writer.abandon(done, context.DeadlineExceeded); !errors.Is(err, db.ErrOutcomeUnknown) {
			t.Errorf("the caller of a write that ran was told %v", err)
		}
		if _, err := d.writer.abandon(refused, context.DeadlineExceeded); err != context.DeadlineExceeded {
			t.Errorf("the caller of a write that was refused was told %v", err)
		}
		return errors.New("halfway")
	})
	stays := newWrite(3, func() error { return nil })

	d.writer.commit([]*write{done, refused, halfway, stays}) // nobody else writes
	if runs != [4]int{1, 1, 2, 1} {
		t.Errorf("the writes ran %v times, want 1, 1, 2, 1", runs)
	}
	if halfway.err == nil || stays.err != nil {
		t.Errorf("halfway got %v and the one after it %v", halfway.err, stays.err)
	}
}

func wantStored(t *testing.T, d *DB, want ...string) {
	t.Helper()
	stored := names(t, d)
	for _, name := range want {
		if !stored[name] {
			t.Errorf("%q is not stored", name)
		}
	}
	if len(stored) != len(want) {
		t.Errorf("stored are %v, want %q", stored, want)
	}
}
