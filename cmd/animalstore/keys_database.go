package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
)

// databaseKeys are keys directly in the database, which only the operator can
// access.
type databaseKeys struct {
	keys.Admin
	store db.DB
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
