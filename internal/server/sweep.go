package server

import (
	"context"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const (
	sweepEvery = time.Minute
	sweepBatch = 500 // rows at a time, so that no request waits long behind it
)

// sweep deletes rows that have expired, until ctx ends. It doesn't report errors:
// requests fail for the same reason, and the next sweep tries again.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.sweepOnce(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweepOnce deletes what has expired by now.
func (s *Server) sweepOnce(ctx context.Context) {
	now := s.cfg.Now()
	sweepBatches(ctx, s.db.DropIdempotencyRecords, animalstore.At(now.Add(-db.IdempotencyWindow)))
	sweepBatches(ctx, s.db.DropDeliveries, animalstore.At(now.Add(-animalstore.DeliveriesKept)))
	sweepBatches(ctx, s.db.DropUsage, animalstore.At(now.Add(-animalstore.UsageKept)))
	sweepBatches(ctx, s.db.DropSessions, animalstore.At(now))
	sweepBatches(ctx, s.db.DropForms, animalstore.At(now.Add(-db.IdempotencyWindow)))
	if s.cfg.EventsRetention > 0 { // otherwise they are kept
		sweepBatches(ctx, s.db.DropEvents, animalstore.At(now.Add(-s.cfg.EventsRetention)))
	}
}

func sweepBatches(ctx context.Context, drop func(context.Context, animalstore.Time, int) (int, error), before animalstore.Time) {
	for {
		dropped, err := drop(ctx, before, sweepBatch)
		if err != nil || dropped < sweepBatch {
			return
		}
	}
}

// runInBackground starts the functions and returns one that ends them and waits.
func runInBackground(runs ...func(context.Context)) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() { run(ctx) })
	}
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}
}
