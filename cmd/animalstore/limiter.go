package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

// limiter is a [ratelimit.Limiter] as a server runs it.
type limiter interface {
	ratelimit.Limiter
	Run(ctx context.Context)
}

// checkRedis refuses a --redis that is no address. It is not repeated, for it may
// hold a password.
func checkRedis(url string) error {
	if url == "" {
		return nil
	}
	if err := ratelimit.CheckRedisURL(url); err != nil {
		return usageError{fmt.Errorf("--redis: %w", err)}
	}
	return nil
}

// openLimiter makes the limiter of a server: its own, or the one it shares with
// others through Redis. The clock is the one it counts by.
func openLimiter(url string, env animalstore.Environment, store db.DB, m *metrics, log *slog.Logger) (l limiter, clock func() time.Time, closeLimiter func() error, err error) {
	if url == "" {
		return ratelimit.NewMemory(store, time.Now, log), time.Now, func() error { return nil }, nil
	}
	shared, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: url, Environment: env, Store: store, Now: time.Now, Log: log})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--redis: %w", err)
	}
	m.watchRedis(shared)
	return shared, shared.Now, shared.Close, nil
}
