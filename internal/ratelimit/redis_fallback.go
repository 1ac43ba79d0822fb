package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const (
	// dialTimeout is for connecting, which no request waits for, unless the address has a
	// longer timeout.
	dialTimeout = time.Second
	// maxLate is how many replies in a row may be late before a server decides on its
	// own. A single one says little: the server itself may be short of processor time.
	maxLate = 3
	// probeEvery is how long after a failed probe Redis is probed again.
	probeEvery = 250 * time.Millisecond
	// reportAfter is how long after an outage its counts are sent to Redis. By then all
	// servers have saved theirs, and the database has the sum.
	reportAfter = time.Second
	// reportTick is how often reports are checked for due ones.
	reportTick = 250 * time.Millisecond
)

// redisStats are the counters behind [RedisStats].
type redisStats struct {
	shared, fallback, failures, outages, reseeds atomic.Int64
	calls, took                                  atomic.Int64 // took is in nanoseconds
}

// RedisStats are the statistics of a Redis since it was created.
type RedisStats struct {
	Fallback          bool  // Redis isn't responding right now
	Shared            int64 // requests Redis decided
	FallbackDecisions int64 // requests decided without Redis
	Failures          int64 // requests whose call failed or timed out
	Outages           int64 // times that Redis stopped responding
	Reseeds           int64 // keys that Redis had forgotten

	Calls int64         // with or without a reply
	Took  time.Duration // of all Calls
}

// Stats returns the statistics of r.
func (r *Redis) Stats() RedisStats {
	return RedisStats{
		Fallback: r.fallback.Load(),
		Shared:   r.stats.shared.Load(), FallbackDecisions: r.stats.fallback.Load(),
		Failures: r.stats.failures.Load(), Outages: r.stats.outages.Load(), Reseeds: r.stats.reseeds.Load(),
		Calls: r.stats.calls.Load(), Took: time.Duration(r.stats.took.Load()),
	}
}

// recordFailure records a failed call and starts the fallback, so that no request waits
// for Redis. The request of a late reply is decided here; only several in a row start the
// fallback. Calls that began before the last fallback ended don't start another.
func (r *Redis) recordFailure(began time.Time, err error) {
	r.stats.failures.Add(1)
	isLate := errors.Is(err, errLate) || errors.Is(err, context.DeadlineExceeded)
	if isLate && r.late.Add(1) < maxLate {
		return
	}
	if !r.fellBackSince(began) {
		r.startFallback(err)
	}
}

// fellBackSince reports whether a fallback has ended since a time. Both have a monotonic
// reading, so it doesn't matter if the clock is set.
func (r *Redis) fellBackSince(began time.Time) bool {
	returned := r.returned.Load()
	return returned != nil && began.Before(*returned)
}

func (r *Redis) startFallback(err error) {
	if !r.fallback.CompareAndSwap(false, true) {
		return
	}
	r.stats.outages.Add(1)
	r.log.Warn("Redis does not respond: until it does, this instance enforces limits on its own", "err", err)
	select {
	case r.fallbackStarted <- struct{}{}:
	default:
	}
}

// takeFallback decides a request without Redis, from this process's state.
func (r *Redis) takeFallback(ctx context.Context, key *animalstore.Key) (Decision, error) {
	return r.local.take(ctx, key, func(e *entry) {
		e.gap = stale
		r.reportLater(e)
	})
}

// saveShortened saves e's state after the clock shortened a window. If that fails,
// the next Save knows whether it was the day.
func (r *Redis) saveShortened(ctx context.Context, e *entry, state db.KeyLimitState) {
	if err := saveNow(ctx, r.store, state); err == nil {
		return
	}
	e.mu.Lock()
	e.dayShortened = e.dayShortened || state.DayShortened
	r.local.markDirty(e)
	e.mu.Unlock()
}

// Run saves the states of keys as [Memory.Run] does, probes a Redis that doesn't
// respond and reports to it what it missed, until ctx ends.
func (r *Redis) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { r.local.Run(ctx) })
	wg.Go(func() { r.runProbe(ctx) })
	wg.Go(func() { r.runReports(ctx) })
	wg.Wait()
}

// runProbe probes Redis while it doesn't respond.
func (r *Redis) runProbe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.fallbackStarted:
		}
		for {
			if r.probe(r.timeout) == nil {
				r.endFallback()
				break
			}
			// The address may lead elsewhere by now. A primary that has become a replica
			// keeps its connections, and refuses every call.
			r.client.close()
			select {
			case <-ctx.Done():
				return
			case <-time.After(probeEvery):
			}
		}
	}
}

// probe makes a request as a key that doesn't exist, over new connections if there are
// none. Unlike a ping, it fails on a read-only Redis. In a Cluster it calls the primary
// whose failure started the fallback, because the braces put both names into one slot.
func (r *Redis) probe(timeout time.Duration) error {
	if err := r.client.connect(); err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	name := r.prefix + "0"
	if failed := r.failedName.Load(); failed != nil {
		name = r.prefix + "{" + *failed + "}"
	}
	probeKey := animalstore.Key{Limits: animalstore.Limits{PerMinute: math.MaxInt64, PerDay: math.MaxInt64}}
	began := time.Now()
	_, err := r.call(max(timeout, dialTimeout), name, opTake, &probeKey, stateText(db.LimitState{}))
	if err == nil && time.Since(began) > timeout { // it may have opened a connection
		_, err = r.call(timeout, name, opTake, &probeKey, stateText(db.LimitState{}))
	}
	return err
}

func (r *Redis) endFallback() {
	now := time.Now()
	r.returned.Store(&now)
	r.late.Store(0)
	r.reportsMu.Lock()
	for i := range r.reports {
		r.reports[i].due = now.Add(reportAfter)
	}
	r.reportsMu.Unlock()
	r.fallback.Store(false)
	r.log.Info("Redis responds again: limits are shared between instances")
}

// report is a key with requests that Redis didn't see, to be sent to it.
type report struct {
	entry *entry
	due   time.Time
}

// reportLater queues an entry, which is locked, to be sent to Redis.
func (r *Redis) reportLater(e *entry) {
	if e.unreported {
		return
	}
	e.unreported = true
	r.reportsMu.Lock()
	r.reports = append(r.reports, report{e, time.Now().Add(reportAfter)})
	r.reportsMu.Unlock()
}

// runReports sends reports to Redis when they are due until ctx ends.
func (r *Redis) runReports(ctx context.Context) {
	tick := time.NewTicker(reportTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.sendReports(ctx)
		}
	}
}

// sendReports sends Redis the states of the keys whose reports are due. Requests do the
// same for their own keys; this is for keys that aren't used any more. A report that fails
// is queued again.
func (r *Redis) sendReports(ctx context.Context) {
	if r.fallback.Load() {
		return
	}
	r.reportsMu.Lock()
	now := time.Now()
	var due []report
	r.reports = slices.DeleteFunc(r.reports, func(p report) bool {
		if p.due.After(now) {
			return false
		}
		due = append(due, p)
		return true
	})
	r.reportsMu.Unlock()

	for _, p := range due {
		p.entry.mu.Lock()
		p.entry.gap, p.entry.unreported = stale, false
		p.entry.mu.Unlock()
		if _, err := r.query(ctx, opRead, &animalstore.Key{ID: p.entry.keyID}); err != nil {
			p.entry.mu.Lock()
			r.reportLater(p.entry)
			p.entry.mu.Unlock()
		}
	}
}
