package ratelimit

import (
	"context"
	"runtime"
	"time"

	"animalstore"
)

// shareWait is how long a request waits at most for the call before its own, so that
// others can join it. That is longer than a call to a Redis nearby takes, and much less
// than a request may take.
const shareWait = time.Millisecond

// sharedCall decides requests of one key that arrived while a call for the key was under
// way. The first one makes the call.
type sharedCall struct {
	key      *animalstore.Key
	requests int64         // guarded by the entry's lock until the call begins
	begin    chan struct{} // gets a value when an earlier call has ended
	done     chan struct{} // closed when the rest is final

	reply reply
	err   error
}

// take has Redis decide a request, and returns its place among those that the reply is
// for.
func (r *Redis) take(ctx context.Context, key *animalstore.Key) (rep reply, place int64, err error) {
	e := r.local.entry(key.ID)
	e.mu.Lock()
	switch {
	case e.calling == 0:
		e.calling++
		e.mu.Unlock()
		defer e.endCall()
		return r.lead(ctx, e, key)
	case e.next == nil:
		c := &sharedCall{key: key, requests: 1, begin: make(chan struct{}, 1), done: make(chan struct{})}
		e.next = c
		e.mu.Unlock()
		r.share(ctx, e, c)
		return c.reply, 0, c.err
	case e.next.fits(key):
		c := e.next
		place = c.join()
		e.mu.Unlock()
		<-c.done
		return c.reply, place, c.err
	}
	e.mu.Unlock()
	rep, err = r.query(ctx, 1, r.timeout, key)
	return rep, 0, err
}

// fits reports whether requests with a key can join. An operator may just have changed
// the key.
func (c *sharedCall) fits(key *animalstore.Key) bool {
	return c.key.Limits == key.Limits && c.key.UnbannedAt == key.UnbannedAt
}

// join adds a request and returns its place. The entry must be locked.
func (c *sharedCall) join() (place int64) {
	c.requests++
	return c.requests - 1
}

// lead makes the call for a request that found none under way, and for those that came
// just after it.
func (r *Redis) lead(ctx context.Context, e *entry, key *animalstore.Key) (rep reply, place int64, err error) {
	runtime.Gosched() // let those who are about to call do so first
	e.mu.Lock()
	c := e.next
	if c == nil || !c.fits(key) {
		e.mu.Unlock()
		rep, err = r.query(ctx, 1, r.timeout, key)
		return rep, 0, err
	}
	e.next = nil
	place = c.join()
	e.mu.Unlock()
	r.decideAll(ctx, c, r.timeout)
	return c.reply, place, c.err
}

// share makes a shared call once the one before has ended, or after shareWait, unless
// another request makes it meanwhile.
func (r *Redis) share(ctx context.Context, e *entry, c *sharedCall) {
	began := time.Now()
	timer := time.NewTimer(shareWait)
	select {
	case <-c.begin:
	case <-c.done:
	case <-timer.C:
	}
	timer.Stop()
	runtime.Gosched() // let those who are about to call do so first
	e.mu.Lock()
	if e.next != c {
		e.mu.Unlock()
		<-c.done
		return
	}
	e.next = nil
	e.calling++
	e.mu.Unlock()
	defer e.endCall()
	r.decideAll(ctx, c, r.timeout-time.Since(began))
}

// decideAll makes a shared call.
func (r *Redis) decideAll(ctx context.Context, c *sharedCall, timeout time.Duration) {
	defer close(c.done)
	c.err = errNoRedis // in case of a panic
	// A client that disconnects must not fail the others.
	c.reply, c.err = r.query(context.WithoutCancel(ctx), c.requests, timeout, c.key)
}

// endCall ends a call and begins the next one.
func (e *entry) endCall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calling--
	if e.next == nil {
		return
	}
	select {
	case e.next.begin <- struct{}{}:
	default:
	}
}
