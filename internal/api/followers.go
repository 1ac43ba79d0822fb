package api

import (
	"context"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
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
	KeyCheck time.Duration // between two checks of a key
	Retry    time.Duration // until a stream reads again after an error
}{
	Comment:  15 * time.Second,
	Write:    2 * time.Minute,
	Blocked:  time.Second,
	KeyCheck: 400 * time.Millisecond,
	Retry:    time.Second,
}

// followers are the streams and the requests that wait for events. A key may be revoked
// or banned meanwhile, so one goroutine rechecks every key that has followers.
type followers struct {
	keys    *keys.Checker
	limiter ratelimit.Limiter
	// keyCheck is followTimes.KeyCheck as it was at the start: the goroutine may run
	// on for a moment after the test that started the server.
	keyCheck time.Duration

	mu       sync.Mutex
	byKey    map[[32]byte]*followedKey // by the hash of the secret
	streams  map[int64]int             // how many each key has, by its id
	waiting  int
	all      int // streams
	cut      int64
	checking bool // the goroutine that checks keys is running
}

// followedKey are the followers with the same secret.
type followedKey struct {
	permissions animalstore.Permissions
	ended       chan struct{} // closed when they must stop
	followers   int
}

func newFollowers(checker *keys.Checker, limiter ratelimit.Limiter) *followers {
	return &followers{keys: checker, limiter: limiter, keyCheck: followTimes.KeyCheck, byKey: map[[32]byte]*followedKey{}, streams: map[int64]int{}}
}

// follower is a stream or a request that waits.
type follower struct {
	ended      <-chan struct{} // closed when its key ends, is banned or has other permissions than before
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
	key := f.byKey[hash]
	if key == nil || key.permissions != r.key.Permissions {
		key = &followedKey{permissions: r.key.Permissions, ended: make(chan struct{})}
		if old := f.byKey[hash]; old != nil {
			close(old.ended)
		}
		f.byKey[hash] = key
	}
	key.followers++
	if !f.checking {
		f.checking = true
		go f.checkKeys()
	}
	return follower{key.ended, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		onEnd()
		if key.followers--; key.followers == 0 && f.byKey[hash] == key {
			delete(f.byKey, hash)
		}
	}}
}

// checkKeys runs while there are followers.
func (f *followers) checkKeys() {
	for {
		time.Sleep(f.keyCheck)
		hashes := f.hashes()
		if hashes == nil {
			return
		}
		for _, hash := range hashes {
			f.checkKey(hash)
		}
	}
}

// hashes returns the keys to check. If there are none, it ends the checks.
func (f *followers) hashes() (all [][32]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hash := range f.byKey {
		all = append(all, hash)
	}
	f.checking = all != nil
	return all
}

// checkKey ends the followers of a key that isn't valid any more, is banned, or has other
// permissions. If the database doesn't respond, they continue: it has no events for them
// either.
func (f *followers) checkKey(hash [32]byte) {
	ctx, cancel := context.WithTimeout(context.Background(), handlerTimeout)
	defer cancel()
	key, err := f.keys.Recheck(ctx, hash)
	if err != nil {
		return
	}
	banned := false
	if key != nil {
		status, err := f.limiter.Status(ctx, key)
		banned = err == nil && !status.BannedUntil.IsZero()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	followed := f.byKey[hash]
	if followed != nil && (key == nil || banned || key.Permissions != followed.permissions) {
		close(followed.ended)
		delete(f.byKey, hash)
	}
}

// countCut counts a stream that was ended because its client didn't read.
func (f *followers) countCut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut++
}
