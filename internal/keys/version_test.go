package keys_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// mintMany stores keys and returns their secrets.
func mintMany(store *memoryStore, n int) (secrets []string) {
	for range n {
		secret := keys.Mint(animalstore.Production)
		store.put(secret)
		secrets = append(secrets, secret)
	}
	return secrets
}

// checkAll checks the secrets sequentially for a while, as busy clients do.
func checkAll(t *testing.T, checker *keys.Checker, secrets []string, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for i, secret := range secrets {
			if _, err := checker.Check(t.Context(), secret); err != nil {
				t.Fatalf("key %d: got %v, want it accepted", i, err)
			}
		}
	}
}

// reads returns the number of key lookups and version reads.
func (s *memoryStore) reads() (lookups, versionReads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		lookups += asked
	}
	return lookups, s.versionReads
}

// set changes how the store works.
func (s *memoryStore) set(change func(*memoryStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// TestCache: while no key changes, busy keys aren't looked up again. Only the
// version is read, however many keys there are. After a change each key is
// looked up once.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		secrets := mintMany(store, 20)
		checkAll(t, checker, secrets, 2*time.Second)
		lookups, versionReads := store.reads()
		if lookups > 2*len(secrets) {
			t.Errorf("got %d lookups of %d keys at the start, want at most two per key", lookups, len(secrets))
		}
		checkAll(t, checker, secrets, 10*time.Second)
		nowLookups, nowReads := store.reads()
		if got := nowLookups - lookups; got != 0 {
			t.Errorf("got %d lookups in ten seconds without a change, want none", got)
		}
		if got := nowReads - versionReads; got < 10 || got > 30 {
			t.Errorf("the version was read %d times in ten seconds, want about 25", got)
		}
		store.put(secrets[0], func(k *animalstore.Key) { k.Name = "new" })
		checkAll(t, checker, secrets, 10*time.Second)
		if afterwards, _ := store.reads(); afterwards-lookups != len(secrets) {
			t.Errorf("got %d lookups after a change, want one for each of %d keys", afterwards-lookups, len(secrets))
		}
		lookups, versionReads = store.reads()
		time.Sleep(time.Hour)
		if nowLookups, nowReads := store.reads(); nowLookups != lookups || nowReads != versionReads {
			t.Error("the store was read while there was no request")
		}
	})
}

// outages are the ways in which reading the version can fail.
var outages = map[string]func(context.Context) error{
	"nothing": nil,
	"it can't be read": func(context.Context) error {
		return errors.New("gone")
	},
	"it is slow": func(context.Context) error {
		time.Sleep(700 * time.Millisecond)
		return nil
	},
	"the store hangs": func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	},
	"the store hangs and ignores the context": func(context.Context) error {
		time.Sleep(time.Minute)
		return nil
	},
}

// TestChangesTakeEffect: a change to a busy key takes effect within a second, whenever it
// happens between two version reads, and even if those fail.
func TestChangesTakeEffect(t *testing.T) {
	for name, outage := range outages {
		for offset := time.Duration(0); offset <= promise; offset += 70 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				checker, store := newChecker()
				secrets := mintMany(store, 3)
				revoked, changed, other := secrets[0], secrets[1], secrets[2:]
				checkAll(t, checker, secrets, 3*time.Second+offset)
				store.set(func(s *memoryStore) { s.onVersion = outage })
				if outage != nil {
					checkAll(t, checker, secrets, offset) // valid keys stay valid
				}
				store.put(revoked, func(k *animalstore.Key) { k.RevokedAt = animalstore.At(time.Now()) })
				store.put(changed, func(k *animalstore.Key) { k.Permissions = animalstore.Write })
				checkAll(t, checker, other, promise-time.Nanosecond)
				if _, err := checker.Check(t.Context(), revoked); !isInvalid(err) {
					t.Errorf("%s, revoked after %v: got %v a second later, want it refused", name, offset, err)
				}
				if key, err := checker.Check(t.Context(), changed); err != nil || key.Permissions != animalstore.Write {
					t.Errorf("%s, changed after %v: got %v, %v, want the new permission", name, offset, key, err)
				}
				time.Sleep(time.Minute) // until the last version read ends
			})
		}
	}
}

// TestStoreGone: once cached keys are too old, they are refused with the
// store's error rather than accepted.
func TestStoreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		secrets := mintMany(store, 1)
		checkAll(t, checker, secrets, 3*time.Second)
		gone := errors.New("gone")
		store.set(func(s *memoryStore) { s.err = gone })
		checkAll(t, checker, secrets, 400*time.Millisecond)
		time.Sleep(promise - 400*time.Millisecond)
		if _, err := checker.Check(t.Context(), secrets[0]); !errors.Is(err, gone) || isInvalid(err) {
			t.Errorf("after a second: got %v, want the store's error", err)
		}
		store.set(func(s *memoryStore) { s.err = nil })
		checkAll(t, checker, secrets, time.Second)
	})
}

// TestChangeDuringLookup: a key that changes during its lookup isn't cached
// under the later version.
func TestChangeDuringLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		secrets := mintMany(store, 2)
		busy := secrets[:1]
		checkAll(t, checker, busy, 3*time.Second)
		store.after = func() { // the key was read; it changes before the lookup returns
			store.after = nil
			store.put(secrets[1], func(k *animalstore.Key) { k.RevokedAt = animalstore.At(time.Now()) })
			checkAll(t, checker, busy, 800*time.Millisecond) // the new version is known
		}
		if _, err := checker.Check(t.Context(), secrets[1]); err != nil {
			t.Fatal(err)
		}
		checkAll(t, checker, busy, 200*time.Millisecond)
		if _, err := checker.Check(t.Context(), secrets[1]); !isInvalid(err) {
			t.Errorf("got %v a second after the change, want it refused", err)
		}
	})
}

// TestStoreGoesBack: after a store is restored from a backup, a key that isn't
// in the backup is refused, even if the backup has a version that was seen
// before.
func TestStoreGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker, store := newChecker()
		secrets := mintMany(store, 1)
		checkAll(t, checker, secrets, 3*time.Second)
		var backup int
		store.set(func(s *memoryStore) { backup = s.version })
		created := keys.Mint(animalstore.Production)
		store.put(created)
		if _, err := checker.Check(t.Context(), created); err != nil { // while the backup's version is the known one
			t.Fatal(err)
		}
		checkAll(t, checker, secrets, 3*time.Second) // others see the new version
		store.set(func(s *memoryStore) {
			delete(s.keys, keys.Hash(created))
			s.version = backup
		})
		checkAll(t, checker, secrets, promise)
		if _, err := checker.Check(t.Context(), created); !isInvalid(err) {
			t.Errorf("got %v a second later, want it refused", err)
		}
	})
}
