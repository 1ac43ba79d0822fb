package client

import (
	"math"
	"net/http"
	"time"
)

// Option changes how a client works. See [New].
type Option func(*settings)

// forever is longer than any wait.
const forever = time.Duration(math.MaxInt64)

// WithHTTPClient makes the client send through a copy of hc: for a proxy, a
// certificate of your own, or tracing. Redirects are never followed, whatever
// hc says of them.
func WithHTTPClient(hc *http.Client) Option {
	return func(s *settings) { s.httpClient = hc }
}

// WithUserAgent sends this as the User-Agent.
func WithUserAgent(agent string) Option {
	return func(s *settings) { s.userAgent = agent }
}

// WithMaxAttempts sets how often one call may be sent in all, 5 without this
// option. 1 means no retries.
func WithMaxAttempts(n int) Option {
	return func(s *settings) { s.maxAttempts = n }
}

// WithBackoff sets the bounds of the waits between attempts. Before the n-th
// retry the client waits a random time up to base·2ⁿ⁻¹, at most max, and if the
// service named a time in Retry-After, that long on top of it. Without this
// option they are 500 ms and 30 s.
func WithBackoff(base, max time.Duration) Option {
	return func(s *settings) { s.backoffBase, s.backoffMax = base, max }
}

// WithMaxWait makes a call fail at once, usually with a [*RateLimitError], when
// it would have to wait longer than d for what Retry-After or the limit's reset
// says. With 0 no limit is ever waited for. Without this option a call waits as
// long as it takes, until midnight UTC if the day is used up, unless its
// context ends sooner.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) { s.maxWait = d }
}

// WithAttemptTimeout bounds each attempt, from the dial to the last byte of the
// answer. Without this option it is 30 s, more than the service itself takes
// for anything. The context bounds the call as a whole.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) { s.attemptTimeout = d }
}

// WithPacing makes the client spread its requests over the window, so that a
// bulk job never meets a 429 as long as nobody else uses the key, and leaves
// something for others at any time. See the section on pacing in the package's
// documentation.
func WithPacing() Option {
	return func(s *settings) { s.pacing = true }
}

// WithOnWait calls f before every wait for a limit or before a retry, to show a
// countdown or to log. It must return soon, and may be called by several
// goroutines at once. The short pauses of pacing are not told.
func WithOnWait(f func(Wait)) Option {
	return func(s *settings) {
		if f != nil {
			s.onWait = f
		}
	}
}

// Wait is a pause that a call is about to make.
type Wait struct {
	Operation string        // what is being done, such as "createPet"
	Attempt   int           // how often it was sent so far; 0 if not yet
	For       time.Duration // how long the pause is
	// Reason is why: a [*RateLimitError] for a limit, otherwise the failure
	// after which it will be sent again.
	Reason error
}

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	ifMatch        string
	matchGiven     bool
	ifNoneMatch    string
	idempotencyKey string
	keyGiven       bool
	meta           *Meta
}

// IfMatch makes a change only if the resource still has this ETag; otherwise the
// error has code precondition_failed. An ETag comes with [ReadMeta], quotes
// included.
func IfMatch(etag string) CallOption {
	return func(o *callOptions) { o.ifMatch, o.matchGiven = etag, true }
}

// IfNoneMatch makes a read return [ErrNotModified] if what is there still has
// this ETag. On a list it is about the first page. "" is for a first read.
func IfNoneMatch(etag string) CallOption {
	return func(o *callOptions) { o.ifNoneMatch = etag }
}

// IdempotencyKey names a request, so that it is carried out once however often
// it is sent within 24 hours, by whichever process. Without this option
// CreatePet and PlaceOrder name each call by chance, which covers their own
// retries. Bring one where you may have to repeat the call itself, as after a
// crash: 1 to 255 visible ASCII characters, the same for the same content.
func IdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.idempotencyKey, o.keyGiven = key, true }
}

// ReadMeta fills m with what the answer tells beside its body. On a list, that
// is the page read last. After a failure it is about the last answer there was;
// if there was none, all but Attempts is zero.
func ReadMeta(m *Meta) CallOption {
	return func(o *callOptions) { o.meta = m }
}

// Meta is what an answer tells beside its body.
type Meta struct {
	Status    int    // of HTTP
	ETag      string // for [IfMatch] and [IfNoneMatch]; "" if it has none
	RequestID string // names the request in the server's log
	Replayed  bool   // the answer was given before, to the same [IdempotencyKey]
	Attempts  int    // how often the call was sent
	RateLimit RateLimit
}

// RateLimit is what the headers of an answer tell of the key's limits. They are
// about the minute, unless the day has fewer requests left.
type RateLimit struct {
	Limit     int64
	Remaining int64
	Reset     time.Time // by the server's clock
}
