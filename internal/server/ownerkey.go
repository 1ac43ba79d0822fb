package server

import (
	"context"
	"fmt"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// OwnerKey is the outcome of [Server.CreateOwnerKey].
type OwnerKey struct {
	Secret  string
	Created bool // false if the database already has keys
	Exists  bool // the database has a key with this secret
}

// CreateOwnerKey stores the first key of an empty database: the given secret, or a new
// one if it is "". It changes nothing if the database has keys. If several servers
// start at once, only one creates it.
//
// It isn't part of [New], so that a failed start doesn't lose the key.
func (s *Server) CreateOwnerKey(ctx context.Context, secret string) (OwnerKey, error) {
	env := s.cfg.Environment
	given := secret != ""
	if !given {
		secret = keys.Mint(env)
	} else if err := keys.ValidateForeign(secret, env); err != nil {
		return OwnerKey{}, err
	}
	owner := animalstore.NewKey{
		Name:        "owner",
		Plan:        animalstore.PlanBusiness,
		Permissions: animalstore.Read | animalstore.Write | animalstore.Admin,
		Environment: env,
	}
	if err := owner.Validate(); err != nil {
		return OwnerKey{}, err
	}
	created, err := s.db.CreateFirstKey(db.WithOrigin(ctx, db.Service), owner, keys.Hash(secret), animalstore.At(s.cfg.Hooks.Now()))
	if err != nil {
		return OwnerKey{}, fmt.Errorf("create the owner key: %w", err)
	}
	exists := created
	if given && !created {
		if _, exists, err = s.db.KeyByHash(ctx, keys.Hash(secret)); err != nil {
			return OwnerKey{}, fmt.Errorf("look up the owner key: %w", err)
		}
	}
	return OwnerKey{secret, created, exists}, nil
}

// HasKeys reports whether the database has any key, even a revoked one.
func (s *Server) HasKeys(ctx context.Context) (bool, error) {
	all, err := s.db.Keys(ctx, db.Page{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for keys: %w", err)
	}
	return len(all) > 0, nil
}
