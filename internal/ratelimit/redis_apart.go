package ratelimit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
)

const (
	// firstPatience is for what no request waits for.
	firstPatience = 2 * time.Second
	// Redis is looked for again after this long, then half as often each time.
	probeFirst = 50 * time.Millisecond
	probeLast  = time.Second
	// calm is how long Redis has to answer for an outage to be a new one.
	calm = 10 * time.Second
	// settleEvery is how often keys are looked for that Redis is to be told of.
	settleEvery = 250 * time.Millisecond
	banPatience = time.Second
	// lastPatience is for telling Redis of what it missed at the very end.
	lastPatience = time.Second
)

// redisStats count what a Redis did.
type redisStats struct {
	shared, apart, failures, outages, reseeds atomic.Int64
}

// RedisStats tells what a Redis did so far.
type RedisStats struct {
	Apart    bool  // Redis does not answer right now
	Shared   int64 // requests Redis decided
	Alone    int64 // requests decided without it
	Failures int64 // calls it did not answer, or not in time
	Outages  int64 // times it went away
	Reseeds  int64 // keys it had forgotten
}

// Stats tells what r did so far.
func (r *Redis) Stats() RedisStats {
	return RedisStats{
		Apart:  r.apart.Load(),
		Shared: r.stats.shared.Load(), Alone: r.stats.apart.Load(),
		Failures: r.stats.failures.Load(), Outages: r.stats.outages.Load(), Reseeds: r.stats.reseeds.Load(),
	}
}

// failed notes a call that failed. From now on nobody waits for Redis. Calls made
// before it was found again say nothing about it now.
func (r *Redis) failed(began time.Time, err error) {
	r.stats.failures.Add(1)
	if began.UnixNano() >= r.returned.Load() {
		r.goApart(err)
	}
}

func (r *Redis) goApart(err error) {
	if !r.apart.CompareAndSwap(false, true) {
		return
	}
	r.stats.outages.Add(1)
	r.log.Warn("Redis does not answer: until it does, this instance limits by itself", "err", err)
	select {
	case r.wentOff <- struct{}{}:
	default:
	}
}

// takeApart decides a request without Redis, from what is known here.
func (r *Redis) takeApart(ctx context.Context, key *animalstore.Key) (Decision, error) {
	e, err := r.local.acquire(ctx, key)
	if err != nil {
		return Decision{}, err
	}
	d := take(&e.state, e.used, key.Limits)
	e.gap = unread
	r.settleLater(e)
	r.local.changed(e)
	state := e.state
	e.mu.Unlock()
	if d.BannedNow {
		r.saveBan(ctx, animalstore.KeyLimitState{KeyID: key.ID, LimitState: state})
	}
	return d, nil
}

// saveBan saves a new ban before it is answered, so that it is found wherever the
// key is used next, whatever becomes of Redis. If that fails, the next Save has
// it.
func (r *Redis) saveBan(ctx context.Context, ban animalstore.KeyLimitState) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), banPatience)
	defer cancel()
	_ = r.store.SaveLimitStates(ctx, []animalstore.KeyLimitState{ban})
}

// Run saves what is known of keys as [Memory.Run] does, looks for a Redis that
// went away and tells it what it missed, until ctx ends.
func (r *Redis) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { r.local.Run(ctx) })
	wg.Go(func() { r.watch(ctx) })
	wg.Go(func() { r.settleRegularly(ctx) })
	wg.Wait()
}

// watch looks for Redis while it does not answer.
func (r *Redis) watch(ctx context.Context) {
	delay := probeFirst
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wentOff:
		}
		if time.Since(time.Unix(0, r.returned.Load())) > calm {
			delay = probeFirst
		}
		for r.apart.Load() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(delay):
			}
			if r.probe(r.patience) == nil {
				r.comeBack()
			}
			delay = min(2*delay, probeLast)
		}
	}
}

// probe makes a request as key 0, which nobody has: it works where requests do,
// and not on a Redis that can only be read.
func (r *Redis) probe(patience time.Duration) error {
	nobody := animalstore.Key{Limits: animalstore.Limits{PerMinute: math.MaxInt64, PerDay: math.MaxInt64}}
	_, err := r.call(patience, "take", &nobody, stateText(animalstore.LimitState{}))
	return err
}

func (r *Redis) comeBack() {
	r.returned.Store(time.Now().UnixNano())
	r.unsettledMu.Lock()
	for i := range r.unsettled {
		r.unsettled[i].round, r.unsettled[i].due = 0, time.Time{}
	}
	r.unsettledMu.Unlock()
	r.apart.Store(false)
	r.log.Info("Redis answers again: limits are shared")
}

// unsettled is a key that Redis did not see every request of.
type unsettled struct {
	entry *entry
	due   time.Time // when Redis is to be told next
	round int
}

// settleAfter are the pauses after Redis was told of a key, before it is told
// again. What other servers admitted in their last half second may not have been
// in the store before. All rounds are over within a minute.
var settleAfter = [...]time.Duration{2 * time.Second, 10 * time.Second, 45 * time.Second}

// settleLater puts an entry, which is locked, in line to be settled.
func (r *Redis) settleLater(e *entry) {
	if e.unsettled {
		return
	}
	e.unsettled = true
	r.unsettledMu.Lock()
	r.unsettled = append(r.unsettled, unsettled{entry: e})
	r.unsettledMu.Unlock()
}

// settleRegularly settles until ctx ends, and a last time then.
func (r *Redis) settleRegularly(ctx context.Context) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
			defer cancel()
			r.settle(ctx)
			return
		case <-tick.C:
			r.settle(ctx)
		}
	}
}

// settle tells Redis of the keys whose turn it is. Requests do the same for the
// keys they come with; this is for those that come no more.
func (r *Redis) settle(ctx context.Context) {
	if r.apart.Load() {
		return
	}
	r.unsettledMu.Lock()
	all := r.unsettled
	r.unsettled = nil
	r.unsettledMu.Unlock()

	now := time.Now()
	var rest []unsettled
	for i, u := range all {
		if now.Before(u.due) {
			rest = append(rest, u)
			continue
		}
		if err := r.tell(ctx, u.entry); err != nil {
			rest = append(rest, all[i:]...) // at the next turn
			break
		}
		if u.round < len(settleAfter) {
			u.due = now.Add(settleAfter[u.round])
			u.round++
			rest = append(rest, u)
			continue
		}
		u.entry.mu.Lock()
		u.entry.unsettled = false
		u.entry.mu.Unlock()
	}
	r.unsettledMu.Lock()
	r.unsettled = append(r.unsettled, rest...)
	r.unsettledMu.Unlock()
}

// tell has Redis know what this process and the store know of a key.
func (r *Redis) tell(ctx context.Context, e *entry) error {
	e.mu.Lock()
	e.gap = unread
	e.mu.Unlock()
	_, err := r.ask(ctx, "look", &animalstore.Key{ID: e.keyID})
	return err
}
