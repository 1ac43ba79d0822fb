package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// SharedStore is the [Store] of a limiter that several servers share.
type SharedStore interface {
	Store
	// Usage returns a key's hourly counts since a time. Every server adds to them,
	// so they include what all servers admitted.
	Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error)
}

// Redis is the [Limiter] that several servers share. One call of a script decides
// a request by Redis's own clock, so it makes no difference which server a client
// talks to.
//
// Each server also keeps the last known state of the keys it serves in memory and
// saves it to the store as [Memory] does. It continues from that state while Redis
// doesn't respond, and sends it to Redis when Redis doesn't know it: because Redis
// lost its data, or was unreachable while keys were used.
type Redis struct {
	client *redisClient
	prefix string // of our keys' names in Redis
	store  SharedStore
	now    func() time.Time
	log    *slog.Logger
	local  *Memory

	ahead   atomic.Int64  // milliseconds by which Redis's clock is ahead of ours
	timeout time.Duration // of one request
	clock   func() int64  // the time to pass to the script; nil except in tests

	// fallback is set while Redis doesn't respond and each server decides on its own.
	fallback        atomic.Bool
	fallbackStarted chan struct{}             // signals that fallback was set
	returned        atomic.Pointer[time.Time] // when fallback last ended; nil: never
	late            atomic.Int64              // replies in a row that didn't come in time

	// failedName is the name in Redis of the key whose call started the fallback.
	failedName atomic.Pointer[string]

	reportsMu sync.Mutex
	reports   []report

	stats redisStats
}

// RedisConfig configures a Redis.
type RedisConfig struct {
	URL         string                  // redis://… or rediss://…, see parseRedisURL
	Environment animalstore.Environment // separates production and staging on one Redis
	Store       SharedStore
	Now         func() time.Time // the clock while Redis is unreachable
	Log         *slog.Logger
}

// NewRedis returns a Redis. It fails if the server is of a different topology than the
// URL says, but not if it is unreachable: then this process enforces the limits on its
// own. The error never repeats the URL, which may contain a password. Until Run is
// called, nothing is saved and the fallback doesn't end.
func NewRedis(c RedisConfig) (*Redis, error) {
	options, timeout, err := parseRedisURL(c.URL)
	if err != nil {
		return nil, err
	}
	if err := checkTopology(options); err != nil {
		return nil, err
	}
	r := newRedis(c)
	r.client, r.timeout = &redisClient{options: options}, timeout
	if err := r.probe(max(dialTimeout, timeout)); err != nil {
		r.startFallback(err)
	}
	return r, nil
}

// newRedis returns a Redis without connections.
func newRedis(c RedisConfig) *Redis {
	r := &Redis{
		prefix:          "animalstore:" + string(c.Environment) + ":limits:",
		store:           c.Store,
		now:             c.Now,
		log:             c.Log,
		fallbackStarted: make(chan struct{}, 1),
	}
	r.local = NewMemory(usageAwareStore{r}, r.Now, c.Log)
	return r
}

// Close closes the connections to Redis.
func (r *Redis) Close() error {
	r.client.close()
	return nil
}

// Now is the current time by Redis's clock, as last observed.
func (r *Redis) Now() time.Time { return r.now().Add(time.Duration(r.ahead.Load()) * time.Millisecond) }

// Take implements [Limiter].
func (r *Redis) Take(ctx context.Context, key *animalstore.Key) (Decision, error) {
	rep, err := r.query(ctx, opTake, key)
	var d Decision
	if err == nil {
		if d, err = rep.decision(key.Limits); err != nil {
			r.recordFailure(time.Now(), err)
			err = errNoRedis
		}
	}
	if errors.Is(err, errNoRedis) {
		r.stats.fallback.Add(1)
		return r.takeFallback(ctx, key)
	}
	if err != nil {
		return Decision{}, err
	}
	r.stats.shared.Add(1)
	if d.BannedNow {
		_ = saveNow(ctx, r.store, db.KeyLimitState{KeyID: key.ID, LimitState: rep.state})
	}
	return d, nil
}

// Status implements [Limiter].
func (r *Redis) Status(ctx context.Context, key *animalstore.Key) (Status, error) {
	rep, err := r.query(ctx, opRead, key)
	if errors.Is(err, errNoRedis) {
		return r.local.Status(ctx, key)
	}
	if err != nil {
		return Status{}, err
	}
	return status(rep.state, rep.now, key), nil
}

// errNoRedis means that Redis didn't respond, or wasn't called because of that.
var errNoRedis = errors.New("redis does not respond")

// operation is what the script is asked to do.
type operation string

const (
	opTake operation = "take" // decide a request
	opRead operation = "read"
)

// query calls the script for a key. It also sends the key's state if Redis may not know
// it: with the key's first request to this server, after a fallback, and when Redis has
// forgotten the key.
func (r *Redis) query(ctx context.Context, op operation, key *animalstore.Key) (reply, error) {
	timeout := r.timeout
	for range 2 {
		if r.fallback.Load() {
			return reply{}, errNoRedis
		}
		e, seed, err := r.prepare(ctx, key)
		if err != nil {
			return reply{}, err
		}
		began, name := time.Now(), r.prefix+strconv.FormatInt(key.ID, 10)
		rep, err := r.call(timeout, name, op, key, seed)
		if err != nil {
			r.failedName.Store(&name)
			r.recordFailure(began, err)
			return reply{}, errNoRedis
		}
		r.late.Store(0)
		if !rep.unknown() {
			state, shortened, inTime := r.recordReply(e, rep, seed != "", began)
			if shortened {
				r.saveShortened(ctx, e, state)
			}
			if !inTime {
				r.stats.failures.Add(1)
				return reply{}, errNoRedis
			}
			return rep, nil
		}
		r.recordForgotten(e)
		timeout -= time.Since(began)
	}
	// A Redis that forgot the key twice within one request can't be used.
	r.recordFailure(time.Now(), errors.New("redis loses the data it is sent"))
	return reply{}, errNoRedis
}

// call runs the script once, for the key whose state has a name in Redis.
func (r *Redis) call(timeout time.Duration, name string, op operation, key *animalstore.Key, seed string) (reply, error) {
	args := []string{
		string(op),
		strconv.FormatInt(key.Limits.PerMinute, 10),
		strconv.FormatInt(key.Limits.PerDay, 10),
		strconv.FormatInt(key.UnbannedAt.Milli(), 10),
		seed,
	}
	if r.clock != nil {
		args = append(args, strconv.FormatInt(r.clock(), 10))
	}
	began := time.Now()
	// Without the request's context: a client that disconnects says nothing about Redis.
	text, err := r.client.runScript(timeout, name, args)
	r.stats.calls.Add(1)
	r.stats.took.Add(int64(time.Since(began)))
	if err != nil {
		return reply{}, fmt.Errorf("call Redis: %w", err)
	}
	rep, err := parseReply(text)
	if err != nil || rep.unknown() {
		return rep, err
	}
	if ahead := rep.now - r.now().UnixMilli(); ahead-r.ahead.Load() > 1 || r.ahead.Load()-ahead > 1 {
		r.ahead.Store(ahead)
	}
	return rep, nil
}

// gap is how far Redis may be behind this process's state of a key.
type gap uint8

const (
	synced gap = iota // Redis is up to date
	unsent            // Redis must be sent the state
	stale             // the same, after reading the store, which may have newer counts of other servers
)

// prepare returns a key's entry and the state to send to Redis, or "" if Redis is
// up to date.
func (r *Redis) prepare(ctx context.Context, key *animalstore.Key) (e *entry, seed string, err error) {
	e = r.local.lock(key.ID)
	defer e.mu.Unlock()
	if !e.loaded || e.gap == stale {
		if err := r.reload(ctx, e); err != nil {
			return nil, "", err
		}
	}
	e.used = r.Now().UnixMilli()
	if liftBan(&e.state, key) {
		r.local.markDirty(e)
	}
	// Redis has dropped a state that no longer matters.
	if e.gap == unsent || !stillMatters(&e.state, e.used) {
		seed = stateText(e.state)
	}
	return e, seed, nil
}

// reload merges the stored state into e, which is locked.
func (r *Redis) reload(ctx context.Context, e *entry) error {
	saved, err := usageAwareStore{r}.LimitState(ctx, e.keyID)
	if err != nil {
		return err
	}
	if e.loaded {
		mergeStates(&e.state, saved)
	} else {
		e.state, e.loaded = saved, true
	}
	e.gap = unsent
	return nil
}

// recordReply merges Redis's reply into e. sent says whether the call, which began then,
// included e's state. It returns the merged state, and whether the reply shortened a window
// that this process knew, because Redis's clock was set back. Redis can lose that, so the
// caller saves it.
//
// A reply isn't in time if there was a fallback since the call began: what it admits may
// come on top of all that this process has admitted on its own.
func (r *Redis) recordReply(e *entry, rep reply, sent bool, began time.Time) (merged db.KeyLimitState, shortened, inTime bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	inTime = !r.fallback.Load() && !r.fellBackSince(began)
	known := e.state
	e.state = rep.state
	shortened, dayShortened := followClock(&known, rep.now)
	if shortened {
		known.Minute = rep.state.Minute
	}
	if dayShortened {
		known.Day = rep.state.Day
	}
	mergeStates(&e.state, known)
	switch {
	case sent && e.gap == unsent:
		e.gap = synced
	case known.BannedAt > rep.state.BannedAt && e.gap == synced:
		e.gap = unsent // Redis lost a ban
	}
	r.local.markDirty(e)
	return db.KeyLimitState{KeyID: e.keyID, LimitState: e.state, DayShortened: dayShortened}, shortened, inTime
}

// recordForgotten records that Redis no longer knows a key. This process sends what it and
// the store know. Requests that aren't in either are missing from the day: those that other
// servers admitted since they last saved usage, and those whose replies are on their way.
// The report adds them, unless the store is missing even more requests by then because
// the key is still in heavy use.
func (r *Redis) recordForgotten(e *entry) {
	r.stats.reseeds.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gap == synced {
		e.gap = stale
	}
	r.reportLater(e)
}

// usageAwareStore is the store for the Memory of a [Redis]. A key's state includes
// what all servers admitted today.
type usageAwareStore struct{ r *Redis }

func (m usageAwareStore) LimitState(ctx context.Context, keyID int64) (db.LimitState, error) {
	state, err := m.r.store.LimitState(ctx, keyID)
	if err != nil {
		return state, err
	}
	midnight := nextMidnight(m.r.Now().UnixMilli())
	hours, err := m.r.store.Usage(ctx, keyID, animalstore.AtMilli(midnight-24*time.Hour.Milliseconds()))
	if err != nil {
		return state, err
	}
	today := db.Window{End: midnight}
	for _, h := range hours {
		if h.Hour.Milli() < midnight {
			today.Used += h.Admitted
		}
	}
	if today.Used > 0 {
		mergeWindow(&state.Day, today)
	}
	return state, nil
}

func (m usageAwareStore) SaveLimitStates(ctx context.Context, states []db.KeyLimitState) error {
	return m.r.store.SaveLimitStates(ctx, states)
}

// Tracked returns how many keys are in this process's memory.
func (r *Redis) Tracked() int { return r.local.Tracked() }
