package keyadmin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
)

// Database is the keys in a database, which only the operator can access. It may
// remove the last key with the permission admin, because the operator can always
// create another.
type Database struct{ Store db.DB }

func (d Database) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	secret := keys.Mint(k.Environment)
	key, err := d.Import(ctx, k, secret)
	return key, secret, err
}

// Import adds a key whose secret was created elsewhere. See [keys.ValidateForeign].
func (d Database) Import(ctx context.Context, k animalstore.NewKey, secret string) (animalstore.Key, error) {
	key, err := d.Store.CreateKey(ctx, k, keys.Hash(secret), now())
	if errors.Is(err, db.ErrExists) {
		return animalstore.Key{}, errors.New("this key already exists in the database")
	}
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("store the key: %w", err)
	}
	return key, nil
}

func (d Database) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		q := db.KeyQuery{Limit: pageSize}
		for {
			page, err := d.Store.Keys(ctx, q)
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

func (d Database) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := d.Store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	state, err := d.Store.LimitState(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	limits := ratelimit.StatusOf(state, &key, time.Now())
	return key.At(time.Now()), &limits, nil
}

func (d Database) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := d.Store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	since := time.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := d.Store.Usage(ctx, id, animalstore.At(since))
	return key, usage, err
}

func (d Database) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := d.Store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, "", err
	}
	secret, at := keys.Mint(key.Environment), now()
	key, err = d.Store.RotateKey(ctx, id, keys.Hash(secret), at, animalstore.At(at.Add(grace)), nil)
	return key.At(at.Time), secret, err
}

func (d Database) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { return patch.Apply(k, time.Now()) })
}

func (d Database) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { k.Revoke(now()); return nil })
}

func (d Database) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
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

func (d Database) change(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	key, err := d.Store.UpdateKey(ctx, id, now(), func(k *animalstore.Key, _ bool) error { return change(k) })
	return key.At(time.Now()), err
}

func now() animalstore.Time { return animalstore.At(time.Now()) }
