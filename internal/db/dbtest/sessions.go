package dbtest

import (
	"errors"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

func sessionOf(n byte, expires animalstore.Time) db.Session {
	return db.Session{Hash: [32]byte{n, 1}, Secret: db.KeyHash{n, 2}, ExpiresAt: expires}
}

// sessionReadsBack: a session reads back until it is removed, independently of other
// sessions.
func sessionReadsBack(t *testing.T, d db.DB) {
	one, other := sessionOf(1, noon), sessionOf(2, later)
	for _, s := range []db.Session{one, other} {
		if err := d.CreateSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	taken := one
	taken.Secret = other.Secret
	if err := d.CreateSession(t.Context(), taken); !errors.Is(err, db.ErrExists) {
		t.Errorf("CreateSession with a hash that exists: got %v, want ErrExists", err)
	}
	for _, want := range []db.Session{one, other} {
		if got, err := d.Session(t.Context(), want.Hash); err != nil || got != want {
			t.Errorf("Session = %+v, %v, want %+v", got, err, want)
		}
	}
	_, err := d.Session(t.Context(), one.Secret)
	wantNotFound(t, err)
	for range 2 { // the second time there is nothing to remove
		if err := d.DeleteSession(t.Context(), one.Hash); err != nil {
			t.Fatal(err)
		}
		_, err := d.Session(t.Context(), one.Hash)
		wantNotFound(t, err)
	}
	if got, err := d.Session(t.Context(), other.Hash); err != nil || got != other {
		t.Errorf("the other session: got %+v, %v, want %+v", got, err, other)
	}
}

// dropsSessions: only expired sessions and old forms are dropped, a few at a time.
func dropsSessions(t *testing.T, d db.DB) {
	for n := range byte(5) {
		if err := errors.Join(d.CreateSession(t.Context(), sessionOf(n, noon)), d.UseForm(t.Context(), [32]byte{n}, noon)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.CreateSession(t.Context(), sessionOf(9, later)), d.UseForm(t.Context(), [32]byte{9}, later)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 3, 2, 0} {
		before := later
		if i == 0 {
			before = noon
		}
		if dropped, err := d.DropSessions(t.Context(), before, 3); err != nil || dropped != want {
			t.Errorf("%d: DropSessions = %d, %v, want %d", i, dropped, err, want)
		}
		if dropped, err := d.DropForms(t.Context(), before, 3); err != nil || dropped != want {
			t.Errorf("%d: DropForms = %d, %v, want %d", i, dropped, err, want)
		}
	}
	if _, err := d.Session(t.Context(), sessionOf(9, later).Hash); err != nil {
		t.Errorf("the session that hasn't expired: got %v, want it kept", err)
	}
	if err := d.UseForm(t.Context(), [32]byte{9}, later); !errors.Is(err, db.ErrExists) {
		t.Errorf("the form that was sent late: got %v, want ErrExists", err)
	}
}

// formsAreUsedOnce: of many callers that send a form at once, one succeeds.
func formsAreUsedOnce(t *testing.T, d db.DB) {
	var first atomic.Int64
	together(t, 20, func(int) error {
		switch err := d.UseForm(t.Context(), [32]byte{1}, noon); {
		case err == nil:
			first.Add(1)
		case !errors.Is(err, db.ErrExists):
			return err
		}
		return nil
	})
	if n := first.Load(); n != 1 {
		t.Errorf("%d callers sent the form, want 1", n)
	}
	if err := d.UseForm(t.Context(), [32]byte{2}, noon); err != nil {
		t.Errorf("another form: got %v, want nil", err)
	}
}
