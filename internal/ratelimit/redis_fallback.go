package ratelimit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const (
	// dialTimeout is for connecting, which no request waits for.
	dialTimeout = time.Second
	// Redis is probed after probeFirst, then after twice as long each time, up to
	// probeLast.
	probeFirst = 50 * time.Millisecond
	probeLast  = time.Second
	// newOutageAfter is how long Redis must have answered for probing to start with
	// probeFirst again.
	newOutageAfter = 10 * time.Second
	// syncEvery is how often the states of unsynced keys are sent to Redis.
	syncEvery = 250 * time.Millisecond
	// finalSyncTimeout limits the last sync at shutdown.
	finalSyncTimeout = time.Second
)

// redisStats are the counters behind [RedisStats].
type redisStats struct {
	shared, fallback, failures, outages, reseeds atomic.Int64
	calls, took                                  atomic.Int64 // took is in nanoseconds
}

// RedisStats are the statistics of a Redis since it was created.
type RedisStats struct {
	Fallback          bool  // Redis isn't answering right now
	Shared            int64 // requests Redis decided
	FallbackDecisions int64 // requests decided without Redis
	Failures          int64 // requests whose call failed or timed out
	Outages           int64 // times that Redis stopped answering
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
// for Redis. Calls that began before the last fallback ended don't start another.
func (r *Redis) recordFailure(began time.Time, err error) {
	r.stats.failures.Add(1)
	if began.UnixNano() >= r.returned.Load() {
		r.startFallback(err)
	}
}

func (r *Redis) startFallback(err error) {
	if !r.fallback.CompareAndSwap(false, true) {
		return
	}
	r.stats.outages.Add(1)
	r.log.Warn("Redis does not answer: until it does, this instance enforces limits on its own", "err", err)
	select {
	case r.fallbackStarted <- struct{}{}:
	default:
	}
}

// takeFallback decides a request without Redis, from this process's state.
func (r *Redis) takeFallback(ctx context.Context, key *animalstore.Key) (Decision, error) {
	e, err := r.local.acquire(ctx, key)
	if err != nil {
		return Decision{}, err
	}
	d := decide(&e.state, e.used, key)
	e.gap = stale
	r.syncLater(e)
	r.local.markDirty(e)
	state := e.state
	e.mu.Unlock()
	if d.BannedNow {
		_ = saveNow(ctx, r.store, db.KeyLimitState{KeyID: key.ID, LimitState: state})
	}
	return d, nil
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
// answer and sends it what it missed, until ctx ends.
func (r *Redis) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { r.local.Run(ctx) })
	wg.Go(func() { r.runProbe(ctx) })
	wg.Go(func() { r.runSync(ctx) })
	wg.Wait()
}

// runProbe probes Redis while it doesn't answer.
func (r *Redis) runProbe(ctx context.Context) {
	delay := probeFirst
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.fallbackStarted:
		case <-r.client.lost:
			// Redis also closes connections that are idle, which is no outage.
			if !r.fallback.Load() {
				if err := r.probe(r.timeout); err != nil {
					r.startFallback(err)
				}
			}
			continue
		}
		if time.Since(time.Unix(0, r.returned.Load())) > newOutageAfter {
			delay = probeFirst
		}
		for r.fallback.Load() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(delay):
			}
			if r.probe(r.timeout) == nil {
				r.endFallback()
			} else {
				// The address may lead elsewhere by now. A primary that has become a
				// replica keeps its connections, and refuses every call.
				r.client.close()
			}
			delay = min(2*delay, probeLast)
		}
	}
}

// probe makes a request as key 0, which doesn't exist, to every primary, over new
// connections where there are none. Unlike a ping, it fails on a read-only Redis.
func (r *Redis) probe(timeout time.Duration) error {
	if err := r.client.connect(); err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	names, err := r.client.probeNames(r.prefix + "0")
	if err != nil {
		return err
	}
	probeKey := animalstore.Key{Limits: animalstore.Limits{PerMinute: math.MaxInt64, PerDay: math.MaxInt64}}
	for _, name := range names {
		began := time.Now()
		_, err := r.call(max(timeout, dialTimeout), name, opTake, &probeKey, stateText(db.LimitState{}))
		if err == nil && time.Since(began) > timeout { // it may have opened a connection
			_, err = r.call(timeout, name, opTake, &probeKey, stateText(db.LimitState{}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Redis) endFallback() {
	r.returned.Store(time.Now().UnixNano())
	r.unsyncedMu.Lock()
	for i := range r.unsynced {
		r.unsynced[i].round, r.unsynced[i].due = 0, time.Time{}
	}
	r.unsyncedMu.Unlock()
	r.fallback.Store(false)
	r.log.Info("Redis answers again: limits are shared between instances")
}

// unsynced is a key with requests that Redis didn't see.
type unsynced struct {
	entry *entry
	due   time.Time // when to send the state next
	round int
}

// resyncAfter are the pauses before a key's state is sent to Redis again. What
// other servers admitted in their last half second may not have been in the store
// before. All rounds are over within a minute.
var resyncAfter = [...]time.Duration{2 * time.Second, 10 * time.Second, 45 * time.Second}

// syncLater queues an entry, which is locked, to be sent to Redis.
func (r *Redis) syncLater(e *entry) {
	if e.unsynced {
		return
	}
	e.unsynced = true
	r.unsyncedMu.Lock()
	r.unsynced = append(r.unsynced, unsynced{entry: e})
	r.unsyncedMu.Unlock()
}

// runSync sends unsynced states to Redis until ctx ends, and once more then.
func (r *Redis) runSync(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSyncTimeout)
			defer cancel()
			r.syncDue(ctx)
			return
		case <-tick.C:
			r.syncDue(ctx)
		}
	}
}

// syncDue sends the states that are due to Redis. Requests do the same for their
// own keys; this is for keys that aren't used any more.
func (r *Redis) syncDue(ctx context.Context) {
	if r.fallback.Load() {
		return
	}
	r.unsyncedMu.Lock()
	all := r.unsynced
	r.unsynced = nil
	r.unsyncedMu.Unlock()

	now := time.Now()
	var rest []unsynced
	for i, u := range all {
		if now.Before(u.due) {
			rest = append(rest, u)
			continue
		}
		if err := r.sendState(ctx, u.entry); err != nil {
			rest = append(rest, all[i:]...) // at the next tick
			break
		}
		if u.round < len(resyncAfter) {
			u.due = now.Add(resyncAfter[u.round])
			u.round++
			rest = append(rest, u)
			continue
		}
		u.entry.mu.Lock()
		u.entry.unsynced = false
		u.entry.mu.Unlock()
	}
	r.unsyncedMu.Lock()
	r.unsynced = append(r.unsynced, rest...)
	r.unsyncedMu.Unlock()
}

// sendState sends Redis the state of a key from this process and the store.
func (r *Redis) sendState(ctx context.Context, e *entry) error {
	e.mu.Lock()
	e.gap = stale
	e.mu.Unlock()
	_, err := r.query(ctx, opRead, &animalstore.Key{ID: e.keyID})
	return err
}
