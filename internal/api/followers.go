package api

import (
	"context"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// maxStreams is how many streams of a key an instance serves at once.
const maxStreams = 10

// streamRetryAfter is the Retry-After of a stream that is refused, in seconds.
const streamRetryAfter = 5

// followTimes are the intervals and timeouts of followers. Tests shorten them.
var followTimes = struct {
	Comment  time.Duration // between two comments in a stream
	Write    time.Duration // for a client to take a piece of what a stream sends
	Blocked  time.Duration // until a write counts as blocked
	KeyCheck time.Duration // between two checks of all keys
	Retry    time.Duration // until a stream reads again after an error
}{
	Comment:  15 * time.Second,
	Write:    2 * time.Minute,
	Blocked:  time.Second,
	KeyCheck: 400 * time.Millisecond,
	Retry:    time.Second,
}

// followers are the streams and the requests that wait for events. A key may be revoked
// or expire while it has some, so one goroutine checks the keys that have followers: in memory,
// and with one read of all of them after any key has changed.
type followers struct {
	keys *keys.Checker
	// keyCheck is followTimes.KeyCheck as it was at the start: the goroutine may run
	// on for a moment after the test that started the server.
	keyCheck time.Duration

	mu       sync.Mutex
	byKey    map[int64]map[db.KeyHash]*followedKey // by id and the hash of the secret
	streams  map[int64]int                         // how many each key has, by its id
	waiting  int
	all      int // streams
	cut      int64
	checking bool // the goroutine that checks keys is running
}

// followedKey are the followers with the same secret.
type followedKey struct {
	key       *animalstore.Key
	changes   int64         // of all keys when it was looked up; 0: not since it was followed
	ended     chan struct{} // closed when they must stop
	followers int
}

func newFollowers(checker *keys.Checker) *followers {
	return &followers{keys: checker, keyCheck: followTimes.KeyCheck, byKey: map[int64]map[db.KeyHash]*followedKey{}, streams: map[int64]int{}}
}

// follower is a stream or a request that waits.
type follower struct {
	ended      <-chan struct{} // closed when its key ends, is banned or suspended, or has other permissions or networks
	unregister func()
}

// add adds a request that waits.
func (f *followers) add(r *request) follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	return f.follow(r, func() { f.waiting-- })
}

// addStream adds a stream, unless its key has too many.
func (f *followers) addStream(r *request) (follower, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.key.ID
	if f.streams[id] >= maxStreams {
		return follower{}, animalstore.Errorf(animalstore.TooManyStreams, "this key already has %d streams here: end one of them, or use GET with wait", maxStreams)
	}
	f.streams[id]++
	f.all++
	return f.follow(r, func() {
		f.all--
		if f.streams[id]--; f.streams[id] == 0 {
			delete(f.streams, id)
		}
	}), nil
}

func (f *followers) follow(r *request, onEnd func()) follower {
	hash := r.secretHash()
	followed := f.byKey[r.key.ID][hash]
	if followed == nil || !sameAccess(followed.key, r.key) {
		if followed != nil {
			f.end(followed, hash)
		}
		followed = &followedKey{key: r.key, ended: make(chan struct{})}
		if f.byKey[r.key.ID] == nil {
			f.byKey[r.key.ID] = map[db.KeyHash]*followedKey{}
		}
		f.byKey[r.key.ID][hash] = followed
	}
	followed.followers++
	if !f.checking {
		f.checking = true
		go f.checkKeys()
	}
	return follower{followed.ended, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		onEnd()
		if followed.followers--; followed.followers == 0 && !isClosed(followed.ended) {
			f.end(followed, hash)
		}
	}}
}

// sameAccess reports whether two versions of a key may follow the same events from the same
// addresses.
func sameAccess(a, b *animalstore.Key) bool {
	return a.Permissions == b.Permissions && a.Networks == b.Networks && a.Suspended() == b.Suspended()
}

// end ends the followers with a secret. The caller holds mu.
func (f *followers) end(followed *followedKey, hash db.KeyHash) {
	close(followed.ended)
	id := followed.key.ID
	if delete(f.byKey[id], hash); len(f.byKey[id]) == 0 {
		delete(f.byKey, id)
	}
}

// endKey ends all followers of a key, which is banned.
func (f *followers) endKey(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hash, followed := range f.byKey[id] {
		f.end(followed, hash)
	}
}

// checkKeys runs while there are followers.
func (f *followers) checkKeys() {
	for {
		time.Sleep(f.keyCheck)
		changes := f.keys.Changes()
		outdated, any := f.outdated(changes)
		if !any {
			return
		}
		f.lookUp(outdated, changes)
		f.endExpired()
	}
}

// outdated returns the secrets to look up because keys have changed since. If there are
// no followers, it ends the checks.
func (f *followers) outdated(changes int64) (hashes []db.KeyHash, any bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, secrets := range f.byKey {
		for hash, followed := range secrets {
			if followed.changes != changes {
				hashes = append(hashes, hash)
			}
		}
	}
	f.checking = len(f.byKey) > 0
	return hashes, f.checking
}

// lookUp ends the followers of keys that were revoked or now have other access. If the
// database doesn't respond, they continue: it has no events for them either.
func (f *followers) lookUp(hashes []db.KeyHash, changes int64) {
	if len(hashes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	current, err := f.keys.LookUpAll(ctx, hashes)
	if err != nil {
		return
	}
	looked := map[db.KeyHash]bool{}
	for _, hash := range hashes {
		looked[hash] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, secrets := range f.byKey {
		for hash, followed := range secrets {
			if !looked[hash] {
				continue
			}
			key, valid := current[hash]
			if !valid || !sameAccess(&key, followed.key) {
				f.end(followed, hash)
				continue
			}
			followed.key, followed.changes = &key, changes
		}
	}
}

// endExpired ends the followers of keys and secrets whose time is over.
func (f *followers) endExpired() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.keys.Now()
	for _, secrets := range f.byKey {
		for hash, followed := range secrets {
			if !followed.key.Live(now) {
				f.end(followed, hash)
			}
		}
	}
}

// countCut counts a stream that was ended because its client didn't read.
func (f *followers) countCut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut++
}
