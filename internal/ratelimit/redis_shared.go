package ratelimit

import (
	"context"
	"errors"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/batch"
)

const (
	// shareWait is how long a request waits at most for the call before its own, so that
	// others can join it. That is longer than a call to a Redis nearby takes, and much less
	// than a request may take.
	shareWait = time.Millisecond
	// maxCalls is how many calls of one key are under way at most: a call every shareWait
	// to a Redis that is just near enough.
	maxCalls = int(requestTimeout / shareWait)
	// shareGrace is how much longer than the call a request waits, so that it isn't late
	// for a reply in time.
	shareGrace = 10 * time.Millisecond
)

// takeRequest is a request for a decision.
type takeRequest struct {
	key   *animalstore.Key
	began time.Time
}

// takeReply is the reply to the call that decided a request, and the request's place
// among those that it is for.
type takeReply struct {
	reply
	place int64
	err   error
}

// take has Redis decide a request, together with others of its key that arrive during a
// call.
func (r *Redis) take(ctx context.Context, key *animalstore.Key) (reply, int64, error) {
	if r.fallback.Load() {
		return reply{}, 0, errNoRedis
	}
	// The call doesn't use this request's context, and shouldn't wait for the database.
	e, _, err := r.prepare(ctx, key)
	if err != nil {
		return reply{}, 0, err
	}
	began := time.Now()
	got, err := r.takes(e).Do(context.Background(), takeRequest{key, began})
	if errors.Is(err, batch.ErrLate) {
		if errors.Is(err, batch.ErrBegun) { // the call itself counts its requests
			r.startFallbackSince(began, err)
		} else {
			r.recordFailure(began, 1, err)
		}
		return reply{}, 0, errNoRedis
	}
	if err != nil { // a panic
		return reply{}, 0, err
	}
	return got.reply, got.place, got.err
}

// takes returns the batcher for the requests of a key.
func (r *Redis) takes(e *entry) *batch.Batcher[takeRequest, takeReply] {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.takes == nil {
		e.takes = &batch.Batcher[takeRequest, takeReply]{Run: r.takeTogether, Timeout: r.timeout + shareGrace, MaxWait: shareWait, Parallel: maxCalls}
	}
	return e.takes
}

// takeTogether has Redis decide requests of one key, in one call unless an operator just
// changed the key.
func (r *Redis) takeTogether(ctx context.Context, requests []takeRequest) ([]takeReply, error) {
	replies := make([]takeReply, 0, len(requests))
	for len(requests) > 0 {
		first := requests[0]
		n := slices.IndexFunc(requests, func(q takeRequest) bool {
			return q.key.Limits != first.key.Limits || q.key.UnbannedAt != first.key.UnbannedAt
		})
		if n < 0 {
			n = len(requests)
		}
		rep, err := r.query(ctx, int64(n), r.timeout-time.Since(first.began), first.key)
		for place := range n {
			replies = append(replies, takeReply{rep, int64(place), err})
		}
		requests = requests[n:]
	}
	return replies, nil
}
