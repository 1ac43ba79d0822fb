package keys

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
)

// Store looks up keys.
type Store interface {
	// KeyByHash returns the key whose secret has this hash, live or not.
	KeyByHash(ctx context.Context, hash [32]byte) (key animalstore.Key, found bool, err error)
	// KeysByHash returns the keys that KeyByHash finds for these hashes, with one read.
	KeysByHash(ctx context.Context, hashes [][32]byte) (map[[32]byte]animalstore.Key, error)
	// KeysVersion changes whenever KeyByHash would return something different
	// for any hash. It doesn't change when a key's last use is recorded.
	KeysVersion(ctx context.Context) (version string, err error)
}

// freshFor is how long a value read from the store stays valid. We promise that
// revocation, expiry and changes take effect within a second.
const freshFor = 900 * time.Millisecond

// maxCached limits the cached keys. A key that was dropped is looked up again.
const maxCached = 1 << 17

// Checker checks whether a token is valid for this deployment. It looks up a key when it
// is first used, and again after any key has changed. See version.go.
type Checker struct {
	env   animalstore.Environment
	store Store
	now   func() time.Time

	mu        sync.RWMutex
	keys      map[[32]byte]*cachedKey // by the hash of their secrets
	maxCached int                     // of keys

	version    atomic.Pointer[version] // never nil
	refreshing atomic.Bool             // the version is being read
}

type cachedKey struct {
	key     animalstore.Key
	read    time.Time // when the lookup started
	changes int64     // the version's changes at that time
}

// fresh reports whether the cached key is known to have been current less than
// freshFor ago.
func (k *cachedKey) fresh(now time.Time, v *version) bool {
	return isFresh(k.read, now) || k.changes == v.changes && v.changes > 0 && isFresh(v.read, now)
}

// isFresh reports whether a value read at read is still valid at now. It isn't
// if the clock was set back.
func isFresh(read, now time.Time) bool {
	age := now.Sub(read)
	return age >= 0 && age < freshFor
}

// NewChecker returns a Checker for one deployment.
func NewChecker(env animalstore.Environment, store Store, now func() time.Time) *Checker {
	c := &Checker{env: env, store: store, now: now, keys: make(map[[32]byte]*cachedKey), maxCached: maxCached}
	c.version.Store(&version{})
	return c
}

// All refusals have the same text, so that a response doesn't reveal whether a
// stolen key ever worked.
var errInvalid = animalstore.Errorf(animalstore.InvalidAPIKey,
	"the API key is not valid here: check that it is complete, not revoked or expired, and made for this deployment")

// Check returns the key that a token belongs to. The caller must not change it. The
// error has code invalid_api_key, or is the store's if the lookup fails. It returns a key
// that isn't valid together with the error.
func (c *Checker) Check(ctx context.Context, token string) (*animalstore.Key, error) {
	return c.check(ctx, Hash(token), func() bool { return c.worthLookup(token) })
}

// CheckHash is like Check for callers that know only the token's hash.
func (c *Checker) CheckHash(ctx context.Context, hash [32]byte) (*animalstore.Key, error) {
	return c.check(ctx, hash, func() bool { return true })
}

func (c *Checker) check(ctx context.Context, hash [32]byte, worthLookup func() bool) (*animalstore.Key, error) {
	now := c.now()
	c.refreshIfDue(now)
	key, known := c.cached(hash, now)
	if !known {
		if !worthLookup() {
			return nil, errInvalid
		}
		var err error
		if key, err = c.lookUp(ctx, hash, now); err != nil {
			return nil, fmt.Errorf("look up key: %w", err)
		}
	}
	switch {
	case key == nil:
		return nil, errInvalid
	case key.Environment != c.env, !key.Live(now):
		return key, errInvalid
	}
	return key, nil
}

// worthLookup reports whether a token could be valid here, judging by its form.
func (c *Checker) worthLookup(token string) bool {
	if !strings.HasPrefix(token, brand) {
		return len(token) >= minForeign && len(token) <= maxForeign && visibleASCII(token)
	}
	return Environment(token) == c.env
}

// cached returns a key that is fresh and live. Keys that aren't live are never cached: a
// faster refusal would reveal that the secret once worked.
func (c *Checker) cached(hash [32]byte, now time.Time) (*animalstore.Key, bool) {
	c.mu.RLock()
	hit := c.keys[hash]
	c.mu.RUnlock()
	if hit == nil || !hit.fresh(now, c.version.Load()) || !hit.key.Live(now) {
		return nil, false
	}
	return &hit.key, true
}

// lookUp looks up the key with this hash in the store. It returns nil if there is none,
// and caches it if it is live.
func (c *Checker) lookUp(ctx context.Context, hash [32]byte, now time.Time) (*animalstore.Key, error) {
	known := c.version.Load() // before the lookup, which may see a later one
	key, found, err := c.store.KeyByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, hash)
	if !found {
		return nil, nil
	}
	if !key.Live(now) {
		return &key, nil
	}
	if len(c.keys) >= c.maxCached {
		for other := range c.keys {
			delete(c.keys, other)
			break
		}
	}
	cached := &cachedKey{key, now, known.changes}
	c.keys[hash] = cached
	return &cached.key, nil
}

// LookUpAll returns the keys of these secrets that are valid here, with one read that
// bypasses the cache. Long-running responses use it after [Checker.Changes], because they
// must end within a second of losing their key.
func (c *Checker) LookUpAll(ctx context.Context, hashes [][32]byte) (map[[32]byte]animalstore.Key, error) {
	all, err := c.store.KeysByHash(ctx, hashes)
	if err != nil {
		return nil, fmt.Errorf("look up keys: %w", err)
	}
	now := c.now()
	maps.DeleteFunc(all, func(_ [32]byte, key animalstore.Key) bool { return key.Environment != c.env || !key.Live(now) })
	return all, nil
}

// Now is the time by which keys expire.
func (c *Checker) Now() time.Time { return c.now() }
