package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/events"
	"animalstore/internal/metrics"
	"animalstore/internal/ratelimit"
	"animalstore/internal/webhook"
)

// runInBackground starts the functions. stop ends them and waits for them.
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

// limiter is a [ratelimit.Limiter] with its background work.
type limiter interface {
	ratelimit.Limiter
	Run(ctx context.Context)
	Tracked() int
}

// openLimiter creates the limiter: one in memory, or one shared through Redis. It
// returns the clock that the limiter uses.
func (s *Server) openLimiter() (clock func() time.Time, err error) {
	if s.cfg.Redis == "" {
		s.limiter = ratelimit.NewMemory(s.db, s.cfg.Hooks.Now, s.cfg.Log)
		return s.cfg.Hooks.Now, nil
	}
	shared, err := ratelimit.NewRedis(ratelimit.RedisConfig{
		URL:         s.cfg.Redis,
		Environment: s.cfg.Environment,
		Store:       s.db,
		Now:         s.cfg.Hooks.Now,
		Log:         s.cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	s.closers = append(s.closers, func() error {
		shared.Close() // its counts are in Redis or saved: nothing is lost
		return nil
	})
	s.limiter = shared
	return shared.Now, nil
}

// startHub starts the hub, which notifies followers of new events.
func (s *Server) startHub() {
	s.hub = events.NewHub(s.db, s.cfg.Log)
	s.hub.PollEvery = cmp.Or(s.cfg.Hooks.EventsEvery, s.hub.PollEvery)
	s.closeInTime("following events", runInBackground(s.hub.Run))
}

// webhookGrace is how long attempts in progress may take when the server stops.
const webhookGrace = 5 * time.Second

// startWebhooks starts delivering events to webhooks.
func (s *Server) startWebhooks() {
	networks := webhook.NewNetworks(s.cfg.WebhookNetworks)
	s.checkWebhookURL = networks.Check
	if s.cfg.Hooks.CheckWebhookURL != nil {
		s.checkWebhookURL = s.cfg.Hooks.CheckWebhookURL
	}
	s.stopWebhooks = func() error { return nil }
	if s.cfg.Hooks.NoBackground {
		return
	}
	worker := webhook.NewWorker(webhook.Config{
		Store: s.db,
		Sender: webhook.NewSender(webhook.SenderConfig{
			Networks:  networks,
			UserAgent: "animalstore/" + s.cfg.Version,
			TLS:       s.cfg.Hooks.WebhookTLS,
			Timeout:   s.cfg.Hooks.WebhookTimeout,
		}),
		Observer: s.metrics,
		Log:      s.cfg.Log,
		Now:      s.cfg.Hooks.Now,
		Grace:    webhookGrace,

		SharedClock: !s.testClock,
	})
	s.hub.OnPoll(worker.Notify)
	s.stopWebhooks = runInBackground(worker.Run)
	s.closeInTime("delivering to webhooks", s.stopWebhooks)
}

// backupGrace is how long a backup that is cancelled may take to clean up.
const backupGrace = 3 * time.Second

// startBackups starts making backups, if they are configured.
func (s *Server) startBackups(ctx context.Context) (err error) {
	if s.cfg.Backups.Dir == "" && s.cfg.Backups.To == nil {
		return nil
	}
	s.backups, err = transfer.NewScheduler(ctx, transfer.SchedulerConfig{
		Engine:   sqlite.Files{},
		Store:    sqliteFile(s.cfg.Database),
		Identity: s.engine.(*sqlite.DB),
		Schedule: s.cfg.Backups,
		Now:      s.cfg.Hooks.Now,
		Log:      s.cfg.Log,
	})
	if err != nil {
		return err
	}
	if s.cfg.Backups.Dir != "" {
		s.metrics.AddFigures(func() []metrics.Figure { return backupFigures(s.backups.Last(), s.cfg.Backups.Every) })
	}
	if s.cfg.Backups.To != nil {
		s.metrics.AddFigures(func() []metrics.Figure { return remoteBackupFigures(s.backups.Remote()) })
	}
	stop := runInBackground(s.backups.Run)
	s.closers = append(s.closers, func() error {
		if err := waitUntil(time.Now().Add(backupGrace), stop); err != nil {
			s.cfg.Log.Error("a backup could not be stopped", "err", err)
		}
		return s.backups.Close()
	})
	return nil
}

const (
	sweepEvery = time.Minute
	sweepBatch = 500 // rows at a time, so that requests don't wait long
)

// sweep deletes expired rows until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.sweepAndReport(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) sweepAndReport(ctx context.Context) {
	if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("deleting expired rows failed: they take space until it succeeds; retrying in a minute", "err", err)
	}
}

// sweepOnce deletes rows that have expired. One table that fails doesn't keep the others.
func (s *Server) sweepOnce(ctx context.Context) error {
	now := s.cfg.Hooks.Now()
	errs := []error{
		sweepBatches(ctx, s.db.DropIdempotencyRecords, animalstore.At(now.Add(-db.IdempotencyWindow))),
		sweepBatches(ctx, s.db.DropDeliveries, animalstore.At(now.Add(-db.DeliveriesKept))),
		sweepBatches(ctx, s.db.DropUsage, animalstore.At(now.Add(-animalstore.UsageKept))),
		sweepBatches(ctx, s.db.DropFailures, animalstore.At(now.Add(-animalstore.FailuresKept))),
		sweepBatches(ctx, s.db.DropSessions, animalstore.At(now)),
		sweepBatches(ctx, s.db.DropForms, animalstore.At(now.Add(-db.IdempotencyWindow))),
	}
	if s.cfg.EventsRetention > 0 { // otherwise they are kept
		errs = append(errs, sweepBatches(ctx, s.db.DropEvents, animalstore.At(now.Add(-s.cfg.EventsRetention))))
	}
	return errors.Join(errs...)
}

func sweepBatches(ctx context.Context, drop func(context.Context, animalstore.Time, int) (int, error), before animalstore.Time) error {
	for {
		dropped, err := drop(ctx, before, sweepBatch)
		if err != nil || dropped < sweepBatch {
			return err
		}
	}
}
