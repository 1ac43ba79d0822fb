package client

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// gate lets requests through as the key's limits allow, by what the answers so
// far told of them. It is shared by all calls of a client, so that not each of
// them has to run into a limit to learn of it.
//
// What it promises rests on one observation. Take the lowest number remaining
// that an answer told in a window: every request that the service charged after
// that one is still without an answer, for its answer would have told a lower
// number. So that number, less the requests under way and those whose answer was
// lost, is never more than what is left, as long as nobody else uses the key.
type gate struct {
	pacing bool
	began  time.Time

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when anything below changes
	flying  int64         // requests under way
	sent    int64         // requests so far; numbers the tickets
	last    time.Time     // when the last one was sent
	seen    RateLimit     // by the last answer that told
	hasSeen bool

	window  window    // the one that the last answers were about
	asOf    int64     // the latest ticket that told of it
	low     int64     // the least it had remaining
	unsure  int64     // requests in it that may have been charged, and no answer tells
	resetAt time.Time // when it is over, by our clock
	others  others

	// The last refusal by the service, which holds for all calls.
	refusal  *RateLimitError
	closed   time.Time // until when, by our clock
	closedBy int64     // the ticket that was refused

	ahead    time.Duration // how far the server's clock is ahead, at least
	hasAhead bool
}

// window tells one window from another.
type window struct{ limit, reset int64 }

// ticket is the right to send one request. Whoever has one gives it back by one
// of unsent, lost and answered.
type ticket struct{ number int64 }

// others is what else uses the key in a window, as far as it shows.
type others struct {
	first   int64 // what remained when the window was first seen
	ours    int64 // our requests that can have been charged since
	used    int64 // what others used since, at least
	leap    int64 // the most they used between two answers
	earlier int64 // leap of the window before
}

func newGate(pacing bool) *gate {
	return &gate{pacing: pacing, began: time.Now(), changed: make(chan struct{})}
}

// now is the time by a clock that nobody sets.
func (g *gate) now() time.Time { return g.began.Add(time.Since(g.began)) }

func (g *gate) lastSeen() (RateLimit, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen, g.hasSeen
}

// enter waits until a request may be sent. It calls onWait before it waits for a
// limit to pass, and returns a *RateLimitError instead where that would take
// longer than maxWait or than the context allows.
func (g *gate) enter(ctx context.Context, maxWait time.Duration, onWait func(time.Duration, error)) (ticket, error) {
	var told time.Time // the end of the wait that was told last
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
			t := g.admit(now)
			g.mu.Unlock()
			return t, nil
		}
		changed := g.changed
		g.mu.Unlock()
		if d.limit != nil {
			if wait > min(maxWait, left) {
				return ticket{}, d.limit
			}
			if !d.at.Equal(told) {
				onWait(wait, d.limit)
				told = d.at
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

func (g *gate) admit(now time.Time) ticket {
	g.sent++
	g.flying++
	g.others.ours++
	g.last = now
	return ticket{g.sent}
}

// decision is when a request may be sent, or when to look again at the latest.
type decision struct {
	at    time.Time
	limit *RateLimitError // the limit that has to pass until then, if it is known
	pace  bool            // only pacing asks for it: there is something left
}

// doubt is after how long without any request a new call may ask whether a limit
// still holds, for a ban may have been lifted or a plan enlarged. It is far too
// seldom to bring a ban.
const doubt = 2 * time.Minute

func (g *gate) decide(now time.Time) decision {
	doubting := !g.pacing && now.Sub(g.last) >= doubt
	if now.Before(g.closed) && !doubting {
		return decision{at: g.closed, limit: notSent(g.refusal, g.closed.Sub(now))}
	}
	if !now.Before(g.resetAt) { // nothing is known of the window
		if g.flying < g.untold() {
			return decision{at: now}
		}
		return decision{at: now.Add(doubt)} // an answer comes sooner
	}
	if g.spare() <= 0 && !doubting {
		if g.flying > 0 {
			return decision{at: g.resetAt} // an answer may tell more
		}
		return decision{at: g.resetAt, limit: g.usedUp(now)}
	}
	return decision{at: g.slot(), pace: true}
}

// untold is how many requests may be under way in a window that no answer told
// of yet. Pacing lets one of them find out.
func (g *gate) untold() int64 {
	switch {
	case g.pacing:
		return 1
	case g.window.limit > 0:
		return g.window.limit
	}
	return 1 << 62
}

// spare is how many requests may be sent now. With pacing it leaves to others
// what they took between two answers: they may have done so again since the last
// answer, and may once more before the next.
func (g *gate) spare() int64 {
	spare := g.low - g.flying - g.unsure
	if g.pacing {
		spare -= min(2*max(g.others.leap, g.others.earlier), g.window.limit/2)
	}
	return spare
}

// slot is when the next request is due. Without pacing that is at once. With it,
// half of a minute's requests go as fast as they come, and the others are spread
// evenly over the rest of it. A day is not spread: whoever has to come back
// tomorrow rather gets done today what can be.
func (g *gate) slot() time.Time {
	left, rest := g.spare(), g.resetAt.Sub(g.last)
	if !g.pacing || 2*left > g.window.limit || rest > longestMinute {
		return g.last
	}
	return g.last.Add(rest / time.Duration(left+1))
}

// longestMinute is how long the window of a minute can seem: it ends on a whole
// second, and our idea of the server's clock is off by a second at most.
const longestMinute = 62 * time.Second

// unsent gives back the ticket of a request that never left.
func (g *gate) unsent(ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	g.tell()
}

// lost gives back the ticket of a request without an answer. It may have been
// charged.
func (g *gate) lost(ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	g.unsure++
	g.tell()
}

// resent waits until a request may be sent once more that the transport repeats
// by itself: it does so when a connection it had kept turns out to be closed, and
// cannot know whether the request was charged already. Whatever it returns, the
// ticket stays out.
func (g *gate) resent(ctx context.Context, t ticket, maxWait time.Duration) error {
	g.lost(t)
	_, err := g.enter(ctx, maxWait, func(time.Duration, error) {})
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit(g.now())
	}
	return err
}

// answered gives back the ticket of a request with an answer. refusal is not nil
// if that was 429.
func (g *gate) answered(t ticket, res *http.Response, refusal *RateLimitError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	now := g.now()
	if refusal != nil {
		g.hasAhead = false // a wrong idea of the clock may be why
	}
	g.readDate(res.Header, now)
	limit, ok := readRateLimit(res.Header)
	switch {
	case refusal != nil:
		g.close(t, refusal, now)
	case !ok || res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusServiceUnavailable:
		// Before the key is known the headers are about the caller's address.
		g.unsure++
		g.tell()
		return
	case t.number > g.closedBy:
		g.closed = time.Time{}
	}
	if ok {
		g.seen, g.hasSeen = limit, true
		g.observe(t, limit, now)
	}
	if refusal != nil && now.Before(g.closed) && g.closed.Before(g.resetAt) {
		g.resetAt = g.closed // the same instant, told more exactly
	}
	g.tell()
}

// tell wakes those who wait.
func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// close stops all requests for as long as the service asked one to wait.
func (g *gate) close(t ticket, refusal *RateLimitError, now time.Time) {
	if refusal.RetryAfter == 0 || t.number < g.closedBy {
		return
	}
	g.refusal, g.closed, g.closedBy = refusal, now.Add(refusal.RetryAfter), t.number
}

// readDate learns how the server's clock stands to ours. A date is in whole
// seconds and was a while on its way, so it shows how far the server is ahead at
// least; the largest of these comes closest.
func (g *gate) readDate(h http.Header, now time.Time) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	if ahead := date.Sub(now); !g.hasAhead || ahead > g.ahead {
		g.ahead, g.hasAhead = ahead, true
	}
}

// observe takes in what an answer told of a window.
func (g *gate) observe(t ticket, limit RateLimit, now time.Time) {
	told := window{limit.Limit, limit.Reset.Unix()}
	resetAt := limit.Reset.Add(-g.ahead)
	switch {
	case resetAt.Sub(now) > 25*time.Hour:
		return // no window is that long: the clocks cannot be compared
	case told == g.window:
		g.low = min(g.low, limit.Remaining)
	case t.number < g.asOf:
		return // a window of the past
	default:
		g.window, g.low, g.unsure = told, limit.Remaining, 0
		g.others = others{first: limit.Remaining, ours: g.flying, earlier: g.others.leap}
	}
	g.asOf, g.resetAt = max(g.asOf, t.number), resetAt
	if used := g.others.first - g.low - g.others.ours; used > g.others.used {
		g.others.leap = max(g.others.leap, used-g.others.used)
		g.others.used = used
	}
}

// usedUp is the limit that a window with nothing left is.
func (g *gate) usedUp(now time.Time) *RateLimitError {
	e := &RateLimitError{Window: WindowMinute, Limit: g.window.limit, Reset: time.Unix(g.window.reset, 0).UTC()}
	if g.resetAt.Sub(now) > longestMinute {
		e.Window = WindowDay
	}
	return notSent(e, g.resetAt.Sub(now))
}
