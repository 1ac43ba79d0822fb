package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// fakeStandby calls giveUp when a test wants that, not at a deadline.
type fakeStandby struct {
	giveUp func() error
	ended  bool
	early  bool  // call it in Begin
	given  error // then
}

func (f *fakeStandby) Begin(giveUp func() error) {
	if f.giveUp = giveUp; f.early {
		f.given = giveUp()
	}
}

func (f *fakeStandby) End() { f.ended = true }

func withStandby(ctx context.Context, f *fakeStandby) context.Context {
	return context.WithValue(ctx, db.StandbyKey{}, f)
}

// TestOwnWrite: a caller with a standby that finds the connection free writes in its own
// goroutine, and its standby learns the truth about the write whenever it asks.
func TestOwnWrite(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	refused := animalstore.Errorf(animalstore.PetNotAvailable, "no")
	t.Run("not asked", func(t *testing.T) {
		f := &fakeStandby{}
		if err := d.writer.do(withStandby(t.Context(), f), insertPet("own", 0)); err != nil || !f.ended {
			t.Fatalf("the write: %v, ended %v", err, f.ended)
		}
		if !names(t, d)["own"] {
			t.Error("the pet isn't stored")
		}
	})
	t.Run("asked while it is about to commit", func(t *testing.T) {
		f := &fakeStandby{}
		var given error
		d.writer.conn.SetAuthorizer(sqlite.AuthorizeFunc(func(action sqlite.Action) sqlite.AuthResult {
			if action.Operation() == "COMMIT" { // its statement is prepared again
				given = f.giveUp()
			}
			return sqlite.AuthResultOK
		}))
		err := d.writer.do(withStandby(t.Context(), f), insertPet("slow", 0))
		d.writer.conn.SetAuthorizer(nil)
		if !errors.Is(given, db.ErrOutcomeUnknown) {
			t.Errorf("the standby was told %v, want that the outcome is unknown", given)
		}
		if err != nil || !names(t, d)["slow"] {
			t.Errorf("the write: %v, want it stored", err)
		}
	})
	t.Run("asked before it began", func(t *testing.T) {
		f := &fakeStandby{early: true}
		ran := false
		_ = d.writer.do(withStandby(t.Context(), f), func(*sqlite.Conn) error { ran = true; return nil })
		if f.given == nil || errors.Is(f.given, db.ErrOutcomeUnknown) || ran {
			t.Errorf("the standby was told %v, want that nothing was changed; the write ran: %v", f.given, ran)
		}
	})
	t.Run("refused", func(t *testing.T) {
		f := &fakeStandby{}
		err := d.writer.do(withStandby(t.Context(), f), func(*sqlite.Conn) error { return refused })
		if !errors.Is(err, refused) || !f.ended {
			t.Errorf("got %v, ended %v, want the refusal", err, f.ended)
		}
	})
	t.Run("queued behind another", func(t *testing.T) {
		release := hold(t, d)
		defer release()
		f := &fakeStandby{}
		done := make(chan error, 1)
		go func() { done <- d.writer.do(withStandby(t.Context(), f), insertPet("queued", 0)) }()
		queued(t, d, 1)
		release()
		if err := <-done; err != nil || f.giveUp != nil {
			t.Errorf("got %v, with a standby: %v, want a write of the writer's goroutine", err, f.giveUp != nil)
		}
	})
}
