package keys_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// promise is how long a change to a key may take to have an effect.
const promise = time.Second

// memoryStore stores keys in a map and counts lookups.
type memoryStore struct {
	mu           sync.Mutex
	keys         map[[32]byte]animalstore.Key
	asked        map[[32]byte]int
	err          error
	after        func() // runs in every lookup, after the key was read
	version      int
	versionReads int                         // how often the version was read
	onVersion    func(context.Context) error // runs when the version is read
}

func (s *memoryStore) KeyByHash(_ context.Context, hash [32]byte) (animalstore.Key, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[hash]++
	key, found := s.keys[hash]
	if s.after != nil {
		s.mu.Unlock()
		s.after()
		s.mu.Lock()
	}
	return key, found, s.err
}

func (s *memoryStore) KeysByHash(_ context.Context, hashes [][32]byte) (map[[32]byte]animalstore.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[[32]byte]animalstore.Key{}
	for _, hash := range hashes {
		if key, ok := s.keys[hash]; ok {
			found[hash] = key
		}
	}
	return found, s.err
}

func (s *memoryStore) KeysVersion(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.versionReads++
	onVersion, value, err := s.onVersion, fmt.Sprint(s.version), s.err
	s.mu.Unlock()
	if onVersion != nil && err == nil {
		err = onVersion(ctx)
	}
	return value, err
}

// put stores a key under a secret.
func (s *memoryStore) put(secret string, change ...func(*animalstore.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, ok := s.keys[keys.Hash(secret)]
	if !ok {
		key = animalstore.Key{ID: int64(len(s.keys) + 1), Environment: animalstore.Production, Permissions: animalstore.Read}
	}
	for _, f := range change {
		f(&key)
	}
	s.keys[keys.Hash(secret)] = key
	s.version++
}

func (s *memoryStore) count(secret string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[keys.Hash(secret)]
}

func newChecker() (*keys.Checker, *memoryStore) {
	store := &memoryStore{keys: map[[32]byte]animalstore.Key{}, asked: map[[32]byte]int{}}
	return keys.NewChecker(animalstore.Production, store, time.Now), store
}

func isInvalid(err error) bool {
	var coded *animalstore.Error
	return errors.As(err, &coded) && coded.Code == animalstore.InvalidAPIKey
}

func TestCheck(t *testing.T) {
	now := animalstore.At(time.Now())
	_, store := newChecker()
	add := func(secret string, change ...func(*animalstore.Key)) string {
		store.put(secret, change...)
		return secret
	}
	foreign := "a-secret-made-elsewhere"
	tests := []struct {
		name, token string
		ok          bool
		asked       int // lookups in the store
	}{
		{"good", add(keys.Mint(animalstore.Production)), true, 1},
		{"made elsewhere", add(foreign), true, 1},
		{"not yet expired", add(keys.Mint(animalstore.Production), func(k *animalstore.Key) { k.ExpiresAt = animalstore.At(now.Add(time.Hour)) }), true, 1},
		{"unknown", keys.Mint(animalstore.Production), false, 1},
		{"unknown and made elsewhere", strings.Repeat("x", 20), false, 1},
		{"revoked", add(keys.Mint(animalstore.Production), func(k *animalstore.Key) { k.RevokedAt = now }), false, 1},
		{"expired", add(keys.Mint(animalstore.Production), func(k *animalstore.Key) { k.ExpiresAt = now }), false, 1},
		{"minted for the other deployment", add(keys.Mint(animalstore.Staging), func(k *animalstore.Key) { k.Environment = animalstore.Staging }), false, 0},
		{"made elsewhere for the other deployment", add("another-secret-made-elsewhere", func(k *animalstore.Key) { k.Environment = animalstore.Staging }), false, 1},
		{"minted here, stored for the other deployment", add(keys.Mint(animalstore.Production), func(k *animalstore.Key) { k.Environment = animalstore.Staging }), false, 1},
		{"a wrong checksum", add("ast_live_0123456789ABCDEFGHIJKLMNOPQRSTUV000000"), false, 0},
		{"the brand and a long rest", add("ast_" + strings.Repeat("x", 30)), false, 0},
		{"empty", add(""), false, 0},
		{"19 characters", add(strings.Repeat("x", 19)), false, 0},
		{"201 characters", add(strings.Repeat("x", 201)), false, 0},
		{"a blank inside", add("a secret made elsewhere"), false, 0},
		{"not ASCII", add(strings.Repeat("ä", 20)), false, 0},
	}
	messages := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checker := keys.NewChecker(animalstore.Production, store, time.Now)
			key, err := checker.Check(t.Context(), test.token)
			switch {
			case test.ok && (err != nil || key == nil):
				t.Errorf("got %v, %v, want it accepted", key, err)
			case !test.ok && !isInvalid(err):
				t.Errorf("got %v, %v, want invalid_api_key", key, err)
			}
			if got := store.count(test.token); got != test.asked {
				t.Errorf("got %d lookups, want %d", got, test.asked)
			}
			if err != nil {
				messages[err.Error()] = true
			}
		})
	}
	if len(messages) != 1 {
		t.Errorf("got refusals %v, want the same text for all", messages)
	}
}

// TestRefusalsCostTheSame: a key that is no longer valid costs as many lookups as a key
// that never existed, which works as soon as it is created. Fewer lookups would be
// measurably faster.
func TestRefusalsCostTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		now := animalstore.At(time.Now())
		soon := animalstore.At(now.Add(time.Millisecond))
		secrets := map[string]string{}
		for name, change := range map[string]func(*animalstore.Key){
			"unknown":               nil,
			"revoked":               func(k *animalstore.Key) { k.RevokedAt = now },
			"expired":               func(k *animalstore.Key) { k.ExpiresAt = now },
			"rotated away":          func(k *animalstore.Key) { k.SecretExpiresAt = now },
			"expired just now":      func(k *animalstore.Key) { k.ExpiresAt = soon },
			"rotated away just now": func(k *animalstore.Key) { k.SecretExpiresAt = soon },
		} {
			secrets[name] = keys.Mint(animalstore.Production)
			if change != nil {
				store.put(secrets[name], change)
			}
			checker.Check(t.Context(), secrets[name]) // caches the keys that are still valid
		}
		time.Sleep(2 * time.Millisecond)
		for name, secret := range secrets {
			before := store.count(secret)
			for range 5 {
				if _, err := checker.Check(t.Context(), secret); !isInvalid(err) {
					t.Errorf("%s: got %v, want invalid_api_key", name, err)
				}
			}
			if got := store.count(secret) - before; got != 5 {
				t.Errorf("%s: got %d lookups for 5 checks, want 5", name, got)
			}
		}
		store.put(secrets["unknown"])
		if _, err := checker.Check(t.Context(), secrets["unknown"]); err != nil {
			t.Errorf("the unknown key after its creation: got %v, want it accepted", err)
		}
	})
}

// TestExpiryIsExact: a key expires at the exact time, cached or not.
func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		secret := keys.Mint(animalstore.Production)
		store.put(secret, func(k *animalstore.Key) { k.ExpiresAt = animalstore.At(time.Now().Add(500 * time.Millisecond)) })
		checker.Check(t.Context(), secret)
		time.Sleep(499 * time.Millisecond)
		if _, err := checker.Check(t.Context(), secret); err != nil {
			t.Errorf("1 ms before: got %v, want it accepted", err)
		}
		time.Sleep(time.Millisecond)
		if _, err := checker.Check(t.Context(), secret); !isInvalid(err) {
			t.Errorf("at its expiry: got %v, want it refused", err)
		}
	})
}

// TestClockSetBack: cached keys don't live longer when the clock is set back.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	store := &memoryStore{keys: map[[32]byte]animalstore.Key{}, asked: map[[32]byte]int{}}
	checker := keys.NewChecker(animalstore.Production, store, func() time.Time { return now })
	secret := keys.Mint(animalstore.Production)
	store.put(secret)
	checker.Check(t.Context(), secret)
	store.put(secret, func(k *animalstore.Key) { k.RevokedAt = animalstore.At(now) })
	now = now.Add(-time.Hour)
	if _, err := checker.Check(t.Context(), secret); !isInvalid(err) {
		t.Errorf("got %v, want another lookup and a refusal", err)
	}
}

// TestManyKeys: keys are checked correctly even if they don't all fit into the
// cache.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		const most, count = 1000, 1100
		checker.SetMaxCached(most)
		var secrets []string
		for i := range count {
			secrets = append(secrets, fmt.Sprintf("a-secret-made-elsewhere-%d", i))
			store.put(secrets[i])
		}
		for round := range 2 {
			for i, secret := range secrets {
				if key, err := checker.Check(t.Context(), secret); err != nil || key.ID != int64(i+1) {
					t.Fatalf("round %d, key %d: got %v, %v, want it accepted", round, i, key, err)
				}
			}
			if got := checker.Cached(); got != most {
				t.Errorf("round %d: got %d keys cached, want %d", round, got, most)
			}
			store.put(secrets[0]) // now all are stale
			time.Sleep(promise)
		}
	})
}
