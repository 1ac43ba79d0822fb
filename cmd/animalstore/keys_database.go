package main

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

// databaseKeys are keys directly in the database, which only the operator can
// access. The last admin key isn't protected here, because the operator can always
// create another.
type databaseKeys struct{ store db.DB }

func (d databaseKeys) create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	secret := keys.Mint(k.Environment)
	key, err := d.add(ctx, k, secret)
	return key, secret, err
}

// add stores a key with the given secret.
func (d databaseKeys) add(ctx context.Context, k animalstore.NewKey, secret string) (animalstore.Key, error) {
	key, err := d.store.CreateKey(ctx, k, keys.Hash(secret), animalstore.At(time.Now()))
	if errors.Is(err, db.ErrExists) {
		return animalstore.Key{}, errors.New("this key already exists in the database")
	}
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("store the key: %w", err)
	}
	return key, nil
}

func (d databaseKeys) list(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		q := db.KeyQuery{Limit: pageSize}
		for {
			page, err := d.store.Keys(ctx, q)
			if err != nil {
				yield(animalstore.Key{}, fmt.Errorf("list the keys: %w", err))
				return
			}
			for _, k := range page {
				if !yield(k, nil) {
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

func (d databaseKeys) show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	state, err := d.store.LimitState(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	limits := ratelimit.StatusOf(state, &key, time.Now())
	return key, &limits, nil
}

func (d databaseKeys) usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	since := time.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := d.store.Usage(ctx, id, animalstore.At(since))
	return key, usage, err
}

func (d databaseKeys) rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, "", err
	}
	secret, now := keys.Mint(key.Environment), time.Now()
	key, err = d.store.RotateKey(ctx, id, keys.Hash(secret), animalstore.At(now), animalstore.At(now.Add(grace)))
	return key, secret, err
}

func (d databaseKeys) setPlan(ctx context.Context, id int64, plan animalstore.Plan, custom animalstore.Limits) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error {
		if err := k.CheckChangeable(); err != nil {
			return err
		}
		return k.SetPlan(plan, custom)
	})
}

func (d databaseKeys) revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { k.Revoke(animalstore.At(time.Now())); return nil })
}

func (d databaseKeys) unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	_, limits, err := d.show(ctx, id)
	if err != nil {
		return animalstore.Key{}, false, err
	}
	key, err = d.change(ctx, id, func(k *animalstore.Key) error {
		k.Unban(animalstore.At(time.Now()), limits.BannedAt)
		return nil
	})
	return key, !limits.BannedUntil.IsZero(), err
}

func (d databaseKeys) change(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	return d.store.UpdateKey(ctx, id, animalstore.At(time.Now()), func(k *animalstore.Key, _ bool) error { return change(k) })
}
