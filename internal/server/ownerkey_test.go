package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// slowStart makes the first attempts to create the first key fail.
type slowStart struct {
	db.DB
	failures []error
	// stores reports that an attempt with an unknown outcome stored the key.
	stores bool
}

func (s *slowStart) CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (bool, error) {
	if len(s.failures) == 0 {
		return s.DB.CreateFirstKey(ctx, k, hash, at)
	}
	err := s.failures[0]
	s.failures = s.failures[1:]
	if s.stores && errors.Is(err, db.ErrOutcomeUnknown) {
		if _, err := s.DB.CreateFirstKey(ctx, k, hash, at); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("create: %w: %w", err, context.DeadlineExceeded)
}

// TestOwnerKeyOnSlowDatabase: a database that is slow at the start delays the owner key
// but doesn't lose it.
func TestOwnerKeyOnSlowDatabase(t *testing.T) {
	bug := errors.New("a bug")
	for _, test := range []struct {
		name     string
		failures []error
		stores   bool
		want     error
	}{
		{"unavailable twice", []error{db.ErrUnavailable, db.ErrUnavailable}, false, nil},
		{"lost in a commit", []error{db.ErrOutcomeUnknown}, false, nil},
		{"stored by an attempt with an unknown outcome", []error{db.ErrOutcomeUnknown, db.ErrUnavailable}, true, nil},
		{"disk full", []error{db.ErrFull}, false, db.ErrFull},
		{"another error", []error{bug}, false, bug},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := localConfig(t)
			var store db.DB
			cfg.Hooks.WrapDB = func(d db.DB) db.DB {
				store = d
				return &slowStart{d, test.failures, test.stores}
			}
			s, err := New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			owner, err := s.CreateOwnerKey(t.Context(), "")
			if !errors.Is(err, test.want) || owner.Created != (test.want == nil) {
				t.Fatalf("got %+v, %v, want error %v", owner, err, test.want)
			}
			_, exists, err := store.KeyByHash(t.Context(), keys.Hash(owner.Secret))
			if err != nil || exists != owner.Created {
				t.Errorf("the key that was shown exists: %t, %v", exists, err)
			}
		})
	}
}
