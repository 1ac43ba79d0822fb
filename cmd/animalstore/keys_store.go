package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
)

// keyStore is the keys of a store, in a database or behind a server.
type keyStore interface {
	// Create adds a key that passed Validate, and returns its secret.
	Create(context.Context, animalstore.NewKey) (key animalstore.Key, secret string, err error)
	// List lists keys, the latest first.
	List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error]
	// Show returns a key, and its current limits if they are known.
	Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error)
	// Usage is by the hour, the latest first.
	Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error)
	// Rotate gives a key a new secret. The old ones keep working for the grace
	// period.
	Rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error)
	// Update changes a key.
	Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error)
	// Revoke disables a key permanently.
	Revoke(ctx context.Context, id int64) (animalstore.Key, error)
	// Unban lifts the ban of a key, and reports whether there was one.
	Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error)
}

// databaseKeys are the keys in a database, which only the operator can access. It may
// remove the last key with the permission admin, because the operator can always
// create another.
type databaseKeys struct{ store db.DB }

func (d databaseKeys) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	secret := keys.Mint(k.Environment)
	key, err := d.Import(ctx, k, secret)
	return key, secret, err
}

// Import adds a key whose secret was created elsewhere. See [keys.ValidateForeign].
func (d databaseKeys) Import(ctx context.Context, k animalstore.NewKey, secret string) (animalstore.Key, error) {
	key, err := d.store.CreateKey(ctx, k, keys.Hash(secret), now())
	if errors.Is(err, db.ErrExists) {
		return animalstore.Key{}, errors.New("this key already exists in the database")
	}
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("store the key: %w", err)
	}
	return key, nil
}

func (d databaseKeys) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		q := db.KeyQuery{Limit: pageSize}
		for {
			page, err := d.store.Keys(ctx, q)
			if err != nil {
				yield(animalstore.Key{}, fmt.Errorf("list the keys: %w", err))
				return
			}
			for _, k := range page {
				if !yield(k.At(time.Now()), nil) {
					return
				}
			}
			if len(page) < q.Limit {
				return
			}
			q.Before = page[len(page)-1].ID
		}
	}
}

func (d databaseKeys) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	state, err := d.store.LimitState(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	limits := ratelimit.StatusOf(state, &key, time.Now())
	return key.At(time.Now()), &limits, nil
}

func (d databaseKeys) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	since := time.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := d.store.Usage(ctx, id, animalstore.At(since))
	return key, usage, err
}

func (d databaseKeys) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, "", err
	}
	secret, at := keys.Mint(key.Environment), now()
	key, err = d.store.RotateKey(ctx, id, keys.Hash(secret), at, animalstore.At(at.Add(grace)), nil)
	return key.At(at.Time), secret, err
}

func (d databaseKeys) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { return patch.Apply(k, time.Now()) })
}

func (d databaseKeys) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { k.Revoke(now()); return nil })
}

func (d databaseKeys) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	_, limits, err := d.Show(ctx, id)
	if err != nil {
		return animalstore.Key{}, false, err
	}
	key, err = d.change(ctx, id, func(k *animalstore.Key) error {
		k.Unban(now(), limits.BannedAt)
		return nil
	})
	return key, !limits.BannedUntil.IsZero(), err
}

func (d databaseKeys) change(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	key, err := d.store.UpdateKey(ctx, id, now(), func(k *animalstore.Key, _ bool) error { return change(k) })
	return key.At(time.Now()), err
}

func now() animalstore.Time { return animalstore.At(time.Now()) }

// maxServerGrace is the longest grace period that a server allows.
const maxServerGrace = 90 * 24 * time.Hour

// serverKeys are the keys of a server, over HTTP. The client needs a key with the
// permission admin.
type serverKeys struct{ client *client.Client }

func (s serverKeys) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	created := client.NewKey{Name: k.Name, Plan: k.Plan, Permissions: k.Permissions, ExpiresAt: k.ExpiresAt}
	if k.Plan == animalstore.PlanEnterprise { // other plans have fixed limits
		created.Limits = k.Limits
	}
	key, err := s.client.CreateKey(ctx, created)
	return key.Key, key.Secret, err
}

func (s serverKeys) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return s.client.ListKeys(ctx, client.PageQuery{PageSize: pageSize})
}

func (s serverKeys) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := s.client.GetKey(ctx, id)
	return key, nil, err
}

func (s serverKeys) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := s.client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	usage, err := s.client.GetKeyUsage(ctx, id, hours)
	return key, usage, err
}

func (s serverKeys) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := s.client.RotateKey(ctx, id, grace)
	return key.Key, key.Secret, err
}

func (s serverKeys) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return s.client.UpdateKey(ctx, id, patch)
}

// Revoke also reads the key, for its name. That fails if it was the caller's own
// key, which is not an error.
func (s serverKeys) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	if err := s.client.RevokeKey(ctx, id); err != nil {
		return animalstore.Key{}, err
	}
	key, err := s.client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{ID: id, RevokedAt: animalstore.At(time.Now())}, nil
	}
	return key, nil
}

func (s serverKeys) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	var meta client.Meta
	key, err = s.client.UnbanKey(ctx, id, client.ReadMeta(&meta))
	return key, meta.BanLifted, err
}
