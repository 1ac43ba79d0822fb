package server

import (
	"context"
	"fmt"
	"time"

	"animalstore/internal/metrics"
	"animalstore/internal/ratelimit"
)

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
		s.limiter = ratelimit.NewMemory(s.db, s.cfg.Now, s.cfg.Log)
		return s.cfg.Now, nil
	}
	shared, err := ratelimit.NewRedis(ratelimit.RedisConfig{
		URL:         s.cfg.Redis,
		Environment: s.cfg.Environment,
		Store:       s.db,
		Now:         s.cfg.Now,
		Log:         s.cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	s.closers = append(s.closers, func() error {
		shared.Close() // what it held is in Redis or saved: nothing is lost
		return nil
	})
	if s.metrics != nil {
		s.metrics.WatchSharedLimiter(func() metrics.SharedLimiter { return limiterState(shared.Stats()) })
	}
	s.limiter = shared
	return shared.Now, nil
}

func limiterState(stats ratelimit.RedisStats) metrics.SharedLimiter {
	return metrics.SharedLimiter{
		Fallback:          stats.Fallback,
		SharedDecisions:   stats.Shared,
		FallbackDecisions: stats.FallbackDecisions,
		Fallbacks:         stats.Outages,
		Failures:          stats.Failures,
		ForgottenKeys:     stats.Reseeds,
		Calls:             stats.Calls,
		Took:              stats.Took,
	}
}
