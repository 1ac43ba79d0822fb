package ratelimit

import (
	"context"
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
		rep, err = r.query(ctx, 1, r.timeout, key)
		return rep, 0, err
	case e.next == nil:
		c := &sharedCall{key: key, requests: 1, begin: make(chan struct{}, 1), done: make(chan struct{})}
		e.next = c
		e.mu.Unlock()
		r.share(ctx, e, c)
		return c.reply, 0, c.err
	case e.next.key.Limits == key.Limits && e.next.key.UnbannedAt == key.UnbannedAt:
		c := e.next
		place = c.requests
		c.requests++
		e.mu.Unlock()
		<-c.done
		return c.reply, place, c.err
	}
	// An operator has just changed the key.
	e.mu.Unlock()
	rep, err = r.query(ctx, 1, r.timeout, key)
	return rep, 0, err
}

// share makes a shared call once the one before has ended, or after shareWait.
func (r *Redis) share(ctx context.Context, e *entry, c *sharedCall) {
	defer close(c.done)
	began := time.Now()
	timer := time.NewTimer(shareWait)
	select {
	case <-c.begin:
	case <-timer.C:
	}
	timer.Stop()
	e.mu.Lock()
	e.next = nil
	e.calling++
	e.mu.Unlock()
	defer e.endCall()
	c.err = errNoRedis // in case of a panic
	// A client that disconnects must not fail the others.
	c.reply, c.err = r.query(context.WithoutCancel(ctx), c.requests, r.timeout-time.Since(began), c.key)
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
