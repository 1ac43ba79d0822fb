package main

import (
	"context"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const (
	sweepEvery = time.Minute
	sweepBatch = 500 // rows at a time, so that no request waits long behind it
)

// sweeper returns a function that removes from the store what is kept for a
// while only, until ctx ends. A failure shows elsewhere, and the next turn tries
// again.
func sweeper(store db.DB) func(ctx context.Context) {
	return func(ctx context.Context) {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			now := time.Now()
			drop(ctx, store.DropIdempotencyRecords, animalstore.At(now.Add(-db.IdempotencyWindow)))
			drop(ctx, store.DropUsage, animalstore.At(now.Add(-animalstore.UsageKept)))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

func drop(ctx context.Context, some func(context.Context, animalstore.Time, int) (int, error), before animalstore.Time) {
	for {
		dropped, err := some(ctx, before, sweepBatch)
		if err != nil || dropped < sweepBatch {
			return
		}
	}
}
