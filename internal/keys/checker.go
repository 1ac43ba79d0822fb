package keys

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
)

// Store is where keys are looked up.
type Store interface {
	// KeyByHash finds the key with that secret, live or not.
	KeyByHash(ctx context.Context, hash [32]byte) (key animalstore.Key, found bool, err error)
}

// freshFor is how long an answer of the store counts. Revocation, expiry and
// changes are promised to take effect within a second.
const freshFor = 900 * time.Millisecond

// maxCached bounds the keys remembered per shard; live ones are looked up again
// if they are crowded out.
const maxCached = 4096

const shards = 32

// Checker tells whether a token opens this deployment, with one look at the
// store per key and second.
type Checker struct {
	env   animalstore.Environment
	store Store
	log   *slog.Logger
	now   func() time.Time
	shard [shards]shard

	warned atomic.Int64 // the second of the last warning
}

type shard struct {
	mu   sync.RWMutex
	keys map[[32]byte]cached
}

type cached struct {
	key  *animalstore.Key
	read time.Time // when the store was asked
}

// NewChecker makes a Checker for one deployment.
func NewChecker(env animalstore.Environment, store Store, log *slog.Logger, now func() time.Time) *Checker {
	c := &Checker{env: env, store: store, log: log, now: now}
	for i := range c.shard {
		c.shard[i].keys = make(map[[32]byte]cached)
	}
	return c
}

// Environment is the deployment whose keys are good here.
func (c *Checker) Environment() animalstore.Environment { return c.env }

// All refusals read the same, so that an answer does not tell a stolen key's
// finder whether it ever worked.
var errInvalid = animalstore.Errorf(animalstore.InvalidAPIKey,
	"the API key is not valid here: check that it is complete, not revoked or expired, and made for this deployment")

// Check returns the key a token stands for. The caller must not change it. The
// error has code invalid_api_key, or is the store's when it cannot be asked.
func (c *Checker) Check(ctx context.Context, token string) (*animalstore.Key, error) {
	now := c.now()
	hash := Hash(token)
	key, known := c.remembered(hash, now)
	if !known {
		if !c.plausible(ctx, token, now) {
			return nil, errInvalid
		}
		var err error
		if key, err = c.lookUp(ctx, hash, now); err != nil {
			return nil, fmt.Errorf("look up key: %w", err)
		}
	}
	if key == nil {
		return nil, errInvalid
	}
	if key.Environment != c.env {
		c.warn(ctx, key.Environment, now)
		return nil, errInvalid
	}
	return key, nil
}

// plausible reports whether it is worth asking the store about a token.
func (c *Checker) plausible(ctx context.Context, token string, now time.Time) bool {
	if !strings.HasPrefix(token, brand) {
		return len(token) >= minForeign && len(token) <= maxForeign && visibleASCII(token)
	}
	env := Environment(token)
	if env != "" && env != c.env {
		c.warn(ctx, env, now)
	}
	return env == c.env
}

// warn tells of a key of another deployment, once a second at most: anybody can
// make such keys up and would fill the log.
func (c *Checker) warn(ctx context.Context, env animalstore.Environment, now time.Time) {
	last := c.warned.Load()
	if second := now.Unix(); second != last && c.warned.CompareAndSwap(last, second) {
		c.log.WarnContext(ctx, "refused a key of another deployment", "key_environment", env, "environment", c.env)
	}
}

// remembered returns the key the store had for a secret a moment ago, if it is
// live. Of others nothing is remembered: an answer that needs no look-up would
// tell by its speed that the secret worked once.
func (c *Checker) remembered(hash [32]byte, now time.Time) (*animalstore.Key, bool) {
	s := &c.shard[hash[0]%shards]
	s.mu.RLock()
	hit, ok := s.keys[hash]
	s.mu.RUnlock()
	age := now.Sub(hit.read)
	return hit.key, ok && age >= 0 && age < freshFor && hit.key.Live(now)
}

// lookUp asks the store for the key with that secret. It is nil if there is no
// live one.
func (c *Checker) lookUp(ctx context.Context, hash [32]byte, now time.Time) (*animalstore.Key, error) {
	key, found, err := c.store.KeyByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	s := &c.shard[hash[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !found || !key.Live(now) {
		delete(s.keys, hash)
		return nil, nil
	}
	if len(s.keys) >= maxCached {
		s.forget(now)
	}
	s.keys[hash] = cached{&key, now}
	return &key, nil
}

// forget drops what is stale, or everything if nothing is.
func (s *shard) forget(now time.Time) {
	before := len(s.keys)
	for hash, e := range s.keys {
		if now.Sub(e.read) >= freshFor {
			delete(s.keys, hash)
		}
	}
	if len(s.keys) == before {
		clear(s.keys)
	}
}
