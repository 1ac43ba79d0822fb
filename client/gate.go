package client

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// gate admits requests as the key's limits allow, according to the headers of the
// responses so far. All calls of a client share it, so that not every call has to hit a
// limit to learn about it.
//
// It relies on one observation. Take the lowest Remaining of all responses in a window:
// every request that the service charged after that one has no response yet, because
// its response would have had a lower Remaining. So this number, minus the requests in
// flight and those whose response was lost, never exceeds what is left, as long as
// nobody else uses the key.
type gate struct {
	pacing bool
	began  time.Time

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when anything below changes
	inFlight int64         // requests without a response yet
	waiting  int64         // those of them that the service may delay
	sent     int64         // requests so far; numbers the tickets
	last     time.Time     // when the latest one was sent
	seen     RateLimit     // of the latest response that had the headers
	hasSeen  bool

	window    window    // the latest responses' window
	asOf      int64     // the latest ticket with a response about it
	low       int64     // its lowest Remaining
	uncertain int64     // requests in it that may have been charged, not confirmed by a response
	resetAt   time.Time // when it ends, by our clock

	// The latest refusal by the service, which applies to all calls.
	refusal  *RateLimitError
	closed   time.Time // its end, by our clock
	closedBy int64     // the ticket that was refused

	ahead    time.Duration // the server's clock is at least this far ahead of ours
	hasAhead bool
}

// window identifies a window.
type window struct{ limit, reset int64 }

// ticket is the right to send one request. Its holder must return it with returnUnsent,
// returnUnanswered or returnAnswered.
type ticket struct {
	number int64
	waits  bool // the service may delay its response
}

func newGate(pacing bool) *gate {
	return &gate{pacing: pacing, began: time.Now(), changed: make(chan struct{})}
}

// now is the time of a monotonic clock, which can't be set.
func (g *gate) now() time.Time { return g.began.Add(time.Since(g.began)) }

func (g *gate) lastSeen() (RateLimit, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen, g.hasSeen
}

// enter waits until a request may be sent. Before it waits for a limit it calls onWait.
// If that wait would be longer than maxWait or than the context allows, it returns a
// *RateLimitError instead. waits says that the service may delay the response: then no
// other call waits for it.
func (g *gate) enter(ctx context.Context, waits bool, maxWait time.Duration, onWait func(time.Duration, error)) (ticket, error) {
	var reported time.Time // the end of the wait that onWait was last called for
	for {
		if err := ctx.Err(); err != nil {
			return ticket{}, err
		}
		left := forever
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		g.mu.Lock()
		now := g.now()
		d := g.decide(now)
		wait := d.at.Sub(now)
		if wait <= 0 || d.pace && wait > left {
			t := g.admit(now, waits)
			g.mu.Unlock()
			return t, nil
		}
		changed := g.changed
		g.mu.Unlock()
		if d.limit != nil {
			if wait > min(maxWait, left) {
				return ticket{}, d.limit
			}
			if !d.at.Equal(reported) {
				onWait(wait, d.limit)
				reported = d.at
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (g *gate) admit(now time.Time, waits bool) ticket {
	g.sent++
	g.inFlight++
	if waits {
		g.waiting++
	}
	g.last = now
	return ticket{g.sent, waits}
}

// decision is when a request may be sent, or when to decide again.
type decision struct {
	at    time.Time
	limit *RateLimitError // the limit to wait for, if it's known
	pace  bool            // the wait is only for pacing: something is left
}

// recheckAfter is how long after the latest request a new call may check whether a
// limit still applies, because a ban may have been lifted or a plan upgraded. That is
// far too rare to cause a ban.
const recheckAfter = 2 * time.Minute

func (g *gate) decide(now time.Time) decision {
	recheck := !g.pacing && now.Sub(g.last) >= recheckAfter
	if now.Before(g.closed) && !recheck {
		return decision{at: g.closed, limit: notSent(g.refusal, g.closed.Sub(now))}
	}
	if !now.Before(g.resetAt) { // nothing is known about the current window
		if g.inFlight-g.waiting < g.maxUnknown() {
			return decision{at: now}
		}
		return decision{at: now.Add(recheckAfter)} // a response comes sooner
	}
	if g.spare() <= 0 && !recheck {
		if g.inFlight > g.waiting {
			return decision{at: g.resetAt} // a response may show more
		}
		return decision{at: g.resetAt, limit: g.usedUp(now)}
	}
	return decision{at: g.slot(), pace: true}
}

// maxUnknown is how many requests may be in flight in a window that no response has
// described yet. With pacing, a single request finds out.
func (g *gate) maxUnknown() int64 {
	switch {
	case g.pacing:
		return 1
	case g.window.limit > 0:
		return g.window.limit
	}
	return 1 << 62
}

// spare is how many requests may be sent now.
func (g *gate) spare() int64 { return g.low - g.inFlight - g.uncertain }

// slot is when the next request may be sent. Without pacing that is immediately. With
// pacing, half of a minute's requests are sent immediately, and the others are spread
// evenly over the rest of the minute. A day is not spread: a job that can't finish
// today should still do as much as it can today.
func (g *gate) slot() time.Time {
	left, rest := g.spare(), g.resetAt.Sub(g.last)
	if !g.pacing || 2*left > g.window.limit || rest > longestMinute {
		return g.last
	}
	return g.last.Add(rest / time.Duration(left+1))
}

// longestMinute is the longest that a minute window can seem to last: it ends on a
// whole second, and our estimate of the server's clock is off by at most a second.
const longestMinute = 62 * time.Second

// returnUnsent returns the ticket of a request that was never sent.
func (g *gate) returnUnsent(t ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned(t)
	g.wake()
}

// returnUnanswered returns the ticket of a request without a response, which may have
// been charged.
func (g *gate) returnUnanswered(t ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned(t)
	g.uncertain++
	g.wake()
}

// returnAnswered returns the ticket of a request with a response. refusal is not nil if
// the response was a 429.
func (g *gate) returnAnswered(t ticket, res *http.Response, refusal *RateLimitError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned(t)
	now := g.now()
	if refusal != nil {
		g.hasAhead = false // the reason may be a wrong estimate of the clock
	}
	g.readDate(res.Header, now)
	limit, ok := readRateLimit(res.Header)
	switch {
	case refusal != nil:
		g.close(t, refusal, now)
	case !ok || res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusServiceUnavailable:
		// Until the key is checked, the headers are about the caller's address.
		g.uncertain++
		g.wake()
		return
	case t.number > g.closedBy:
		g.closed = time.Time{}
	}
	if ok {
		g.seen, g.hasSeen = limit, true
		g.observe(t, limit, now)
	}
	if refusal != nil && now.Before(g.closed) && g.closed.Before(g.resetAt) {
		g.resetAt = g.closed // the same instant, more accurate
	}
	g.wake()
}

// returned counts a request that is no longer in flight.
func (g *gate) returned(t ticket) {
	g.inFlight--
	if t.waits {
		g.waiting--
	}
}

// wake makes all waiting calls decide again.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// close stops all requests for as long as the service told one of them to wait.
func (g *gate) close(t ticket, refusal *RateLimitError, now time.Time) {
	if refusal.RetryAfter == 0 || t.number < g.closedBy {
		return
	}
	g.refusal, g.closed, g.closedBy = refusal, now.Add(refusal.RetryAfter), t.number
}

// readDate compares the server's clock with ours. A date is truncated to seconds and
// already a little old, so it gives a lower bound for how far the server is ahead; the
// largest value is the most accurate.
func (g *gate) readDate(h http.Header, now time.Time) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	if ahead := date.Sub(now); !g.hasAhead || ahead > g.ahead {
		g.ahead, g.hasAhead = ahead, true
	}
}

// observe updates the window from the headers of a response.
func (g *gate) observe(t ticket, limit RateLimit, now time.Time) {
	observed := window{limit.Limit, limit.Reset.Unix()}
	resetAt := limit.Reset.Add(-g.ahead)
	switch {
	case resetAt.Sub(now) > 25*time.Hour:
		return // no window is that long, so the clocks can't be compared
	case observed == g.window:
		g.low = min(g.low, limit.Remaining)
	case t.number < g.asOf:
		return // an earlier window
	default:
		g.window, g.low, g.uncertain = observed, limit.Remaining, 0
	}
	g.asOf, g.resetAt = max(g.asOf, t.number), resetAt
}

// usedUp is the error for the current window, which has nothing left.
func (g *gate) usedUp(now time.Time) *RateLimitError {
	e := &RateLimitError{Window: WindowMinute, Limit: g.window.limit, Reset: time.Unix(g.window.reset, 0).UTC()}
	if g.resetAt.Sub(now) > longestMinute {
		e.Window = WindowDay
	}
	return notSent(e, g.resetAt.Sub(now))
}
