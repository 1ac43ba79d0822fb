package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// redisPatience is how long one request waits for Redis, however often it has to
// ask. It leaves the scheduler room in the promise of 100 ms.
const redisPatience = 75 * time.Millisecond

//go:embed take.lua
var takeLua string

var takeScript = redis.NewScript(takeLua)

// SharedStore is the [Store] of a limiter that several servers share.
type SharedStore interface {
	Store
	// Usage returns a key's hours since a time. Every server adds to them, so
	// that together they tell what all servers admitted.
	Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error)
}

// Redis is the [Limiter] that several servers share. One call of a script decides
// each request, on Redis's own clock, so it makes no difference which server a
// client asks.
//
// Beside it, each server keeps in memory what it was told of the keys it serves,
// and saves that to the store as [Memory] does. From there it goes on by itself
// while Redis does not answer, and from there Redis is told what it does not
// know: when it lost its data, or was out of reach while keys were used.
type Redis struct {
	client *redis.Client
	prefix string // of the names of our keys in Redis
	store  SharedStore
	now    func() time.Time
	log    *slog.Logger
	local  *Memory

	ahead    atomic.Int64  // milliseconds by which Redis's clock is ahead of ours
	patience time.Duration // redisPatience, but for tests of the rules alone
	clock    func() int64  // what the script takes for the time; nil but in tests

	// apart: Redis does not answer, and each server decides by itself.
	apart    atomic.Bool
	wentOff  chan struct{} // has room for one word that apart was set
	returned atomic.Int64  // when apart ended last, Unix nanoseconds

	unsettledMu sync.Mutex
	unsettled   []unsettled

	stats redisStats
}

// RedisConfig is what a Redis needs.
type RedisConfig struct {
	URL         string                  // redis://… or rediss://…
	Environment animalstore.Environment // keeps production and staging apart on one Redis
	Store       SharedStore
	Now         func() time.Time // the clock while Redis's is out of reach
	Log         *slog.Logger
}

// NewRedis makes a Redis. A server that cannot be reached is no error: limits are
// then those of this process until it can be. The error never repeats the URL,
// which may hold a password. Run has to be called for anything to be saved, and
// for a Redis that went away to be noticed when it is back.
func NewRedis(c RedisConfig) (*Redis, error) {
	opts, err := redisOptions(c.URL)
	if err != nil {
		return nil, err
	}
	redis.SetLogger(silent{}) // what matters of it is logged here
	r := newRedis(c)
	r.client = redis.NewClient(opts)
	if err := r.probe(firstPatience); err != nil {
		r.goApart(err)
	}
	return r, nil
}

// newRedis is a Redis without its connections.
func newRedis(c RedisConfig) *Redis {
	r := &Redis{
		prefix:   "animalstore:" + string(c.Environment) + ":limits:",
		store:    c.Store,
		now:      c.Now,
		log:      c.Log,
		patience: redisPatience,
		wentOff:  make(chan struct{}, 1),
	}
	r.local = NewMemory(remembered{r}, r.Now, c.Log)
	return r
}

// CheckRedisURL tells what is wrong with an address of Redis, without repeating
// it.
func CheckRedisURL(url string) error {
	_, err := redisOptions(url)
	return err
}

func redisOptions(url string) (*redis.Options, error) {
	opts, err := redis.ParseURL(url)
	if err != nil || !strings.HasPrefix(url, "redis://") && !strings.HasPrefix(url, "rediss://") {
		return nil, errors.New("not an address like redis://[user:password@]host:port[/database] or rediss://…")
	}
	opts.ContextTimeoutEnabled = true // every call has a deadline of its own
	opts.MaxRetries = -1              // a second try could charge a request twice
	opts.DialerRetries = 1
	opts.DialTimeout = firstPatience
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return opts, nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections to Redis.
func (r *Redis) Close() error { return r.client.Close() }

// Now is the time by Redis's clock, as far as it is known here.
func (r *Redis) Now() time.Time { return r.now().Add(time.Duration(r.ahead.Load()) * time.Millisecond) }

// Take implements [Limiter].
func (r *Redis) Take(ctx context.Context, key *animalstore.Key) (Decision, error) {
	rep, err := r.ask(ctx, "take", key)
	var d Decision
	if err == nil {
		d, err = rep.decision(key.Limits)
	}
	if errors.Is(err, errApart) {
		r.stats.apart.Add(1)
		return r.takeApart(ctx, key)
	}
	if err != nil {
		return Decision{}, err
	}
	r.stats.shared.Add(1)
	if d.BannedNow {
		r.saveBan(ctx, animalstore.KeyLimitState{KeyID: key.ID, LimitState: rep.state})
	}
	return d, nil
}

// Status implements [Limiter].
func (r *Redis) Status(ctx context.Context, key *animalstore.Key) (Status, error) {
	rep, err := r.ask(ctx, "look", key)
	if errors.Is(err, errApart) {
		return r.local.Status(ctx, key)
	}
	if err != nil {
		return Status{}, err
	}
	return status(rep.state, rep.now, key.Limits), nil
}

// errApart: Redis did not answer, or is known not to.
var errApart = errors.New("redis does not answer")

// ask calls the script for a key. It tells Redis what is known of the key, if
// Redis may not know it: with the first request of the key here, after a time
// apart, and when Redis says that it has forgotten the key.
func (r *Redis) ask(ctx context.Context, verb string, key *animalstore.Key) (reply, error) {
	patience := r.patience
	for range 2 {
		if r.apart.Load() {
			return reply{}, errApart
		}
		e, seed, err := r.prepare(ctx, key)
		if err != nil {
			return reply{}, err
		}
		began := time.Now()
		rep, err := r.call(patience, verb, key, seed)
		if err != nil {
			r.failed(began, err)
			return reply{}, errApart
		}
		if rep.outcome != outcomeUnknown {
			r.learn(e, rep, seed != "")
			return rep, nil
		}
		r.forgotten(e)
		patience -= time.Since(began)
	}
	// It forgot the key twice within one request, and is of no use.
	r.failed(time.Now(), errors.New("redis forgets what it is told"))
	return reply{}, errApart
}

// call runs the script once.
func (r *Redis) call(patience time.Duration, verb string, key *animalstore.Key, seed string) (reply, error) {
	// Not the request's context: whether its client is still there says nothing
	// about Redis.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	args := []any{verb, key.Limits.PerMinute, key.Limits.PerDay, key.UnbannedAt.Milli(), seed}
	if r.clock != nil {
		args = append(args, r.clock())
	}
	text, err := takeScript.Run(ctx, r.client, []string{r.prefix + strconv.FormatInt(key.ID, 10)}, args...).Text()
	if err != nil {
		return reply{}, fmt.Errorf("ask Redis: %w", err)
	}
	rep, err := parseReply(text)
	if err != nil || rep.outcome == outcomeUnknown {
		return rep, err
	}
	if ahead := rep.now - r.now().UnixMilli(); ahead-r.ahead.Load() > 1 || r.ahead.Load()-ahead > 1 {
		r.ahead.Store(ahead)
	}
	return rep, nil
}

// gap is how far Redis may be behind what this process knows of a key.
type gap uint8

const (
	inStep gap = iota // not at all
	untold            // it has to be told
	unread            // and the store is to be asked before, for other servers know more
)

// prepare finds what is known here of a key, as the text to tell Redis, or "" if
// Redis knows it all.
func (r *Redis) prepare(ctx context.Context, key *animalstore.Key) (*entry, string, error) {
	for {
		e := r.local.entry(key.ID)
		e.mu.Lock()
		if e.gone {
			e.mu.Unlock()
			continue
		}
		if !e.loaded || e.gap == unread {
			if err := r.read(ctx, e); err != nil {
				return nil, "", err
			}
		}
		e.used = r.Now().UnixMilli()
		if lift(&e.state, key.UnbannedAt.Milli()) {
			r.local.changed(e)
		}
		seed := ""
		// What does not matter any more is what Redis has forgotten by now.
		if e.gap == untold || !matters(&e.state, e.used) {
			seed = stateText(e.state)
		}
		e.mu.Unlock()
		return e, seed, nil
	}
}

// read adds to e, which is locked, what the store knows. Unless that works it
// unlocks e, even if the store panics.
func (r *Redis) read(ctx context.Context, e *entry) error {
	done := false
	defer func() {
		if !done {
			e.mu.Unlock()
		}
	}()
	saved, err := remembered{r}.LimitState(ctx, e.keyID)
	if err != nil {
		return err
	}
	if e.loaded {
		merge(&e.state, saved)
	} else {
		e.state, e.loaded = saved, true
	}
	e.gap, done = untold, true
	return nil
}

// learn notes what Redis answered.
func (r *Redis) learn(e *entry, rep reply, told bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.state
	e.state = rep.state
	merge(&e.state, known)
	switch {
	case told && e.gap == untold:
		e.gap = inStep
	case known.BannedAt > rep.state.BannedAt && e.gap == inStep:
		e.gap = untold // it lost a ban
	}
	r.local.changed(e)
}

// forgotten notes that Redis does not know a key any more.
func (r *Redis) forgotten(e *entry) {
	r.stats.reseeds.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gap == inStep {
		e.gap = unread
	}
	r.settleLater(e)
}

// remembered is the store as the memory of a [Redis] reads it: how a key stands by
// what was saved last, and by what all servers admitted of it today.
type remembered struct{ r *Redis }

func (m remembered) LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error) {
	state, err := m.r.store.LimitState(ctx, keyID)
	if err != nil {
		return state, err
	}
	midnight := nextMidnight(m.r.Now().UnixMilli())
	hours, err := m.r.store.Usage(ctx, keyID, animalstore.AtMilli(midnight-24*time.Hour.Milliseconds()))
	if err != nil {
		return state, err
	}
	today := animalstore.Window{End: midnight}
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

func (m remembered) SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error {
	return m.r.store.SaveLimitStates(ctx, states)
}
