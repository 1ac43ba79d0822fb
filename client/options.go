package client

import (
	"math"
	"net/http"
	"time"
)

// Option configures a client. See [New].
type Option func(*settings)

// forever is longer than any wait.
const forever = time.Duration(math.MaxInt64)

// WithHTTPClient makes the client use a copy of hc, for example for a proxy, your own
// certificate, or tracing. Redirects are never followed, even if hc would follow them. A
// Timeout of hc is the one of [WithAttemptTimeout] if it is shorter.
func WithHTTPClient(hc *http.Client) Option {
	return func(s *settings) { s.httpClient = hc }
}

// WithUserAgent sets the User-Agent header.
func WithUserAgent(agent string) Option {
	return func(s *settings) { s.userAgent = agent }
}

// WithMaxAttempts sets the maximum number of attempts of a call, by default 5. 1
// means no retries.
func WithMaxAttempts(n int) Option {
	return func(s *settings) { s.maxAttempts = n }
}

// WithBackoff sets how long to wait between attempts. Before the n-th retry the
// client waits a random time up to base·2ⁿ⁻¹, at most max, in addition to the
// time in Retry-After if there is one. The defaults are 500 ms and 30 s.
func WithBackoff(base, max time.Duration) Option {
	return func(s *settings) { s.backoffBase, s.backoffMax = base, max }
}

// WithMaxWait makes a call fail immediately, usually with a [*RateLimitError], if
// Retry-After or the reset of a limit would make it wait longer than d. With 0 a
// call never waits for a limit. By default it waits as long as necessary, until
// midnight UTC if the day is used up, unless its context ends sooner.
func WithMaxWait(d time.Duration) Option {
	return func(s *settings) { s.maxWait = d }
}

// WithAttemptTimeout limits each attempt, from dialing to the last byte of the
// response. The default is 30 s, more than any operation of the service takes. In
// [Client.Events], the time that the service may wait is added, and a stream has no limit
// as long as the service sends something. The context limits the whole call.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) { s.attemptTimeout = d }
}

// WithPacing makes the client spread its requests over the window, so that a bulk job
// never gets a 429 as long as nobody else uses the key. See the section on pacing in the
// package documentation.
func WithPacing() Option {
	return func(s *settings) { s.pacing = true }
}

// WithOnWait calls f before every wait for a limit or a retry, for a countdown or a
// log. f must return quickly and may be called concurrently. It isn't called for the
// short pauses of pacing.
func WithOnWait(f func(Wait)) Option {
	return func(s *settings) {
		if f != nil {
			s.onWait = f
		}
	}
}

// Wait is a pause that a call is about to make.
type Wait struct {
	Operation string        // such as "createPet"
	Attempt   int           // the number of attempts so far
	For       time.Duration // the length of the pause
	// Reason is a [*RateLimitError] for a limit, otherwise the error of the
	// attempt that will be retried.
	Reason error
}

// WithOnAttempt calls f after every attempt of a call, for a log. f must return quickly and
// may be called concurrently.
func WithOnAttempt(f func(CallAttempt)) Option {
	return func(s *settings) {
		if f != nil {
			s.onAttempt = f
		}
	}
}

// CallAttempt is a request that was sent, and its response. It contains neither the key nor
// bodies.
type CallAttempt struct {
	Operation string        // such as "createPet"
	Method    string        // of HTTP
	Path      string        // with the query
	Number    int           // 1 for the first attempt of a call
	Status    int           // of HTTP; 0 without a response
	RequestID string        // identifies the request in the server's log
	Duration  time.Duration // until the end of the response, or until a stream of events began
}

// CallOption configures one call.
type CallOption func(*callOptions)

type callOptions struct {
	ifMatch        string
	matchGiven     bool
	ifNoneMatch    string
	idempotencyKey string
	keyGiven       bool
	pageSize       int
	cursor         string
	onePage        bool
	meta           *Meta
}

// IfMatch makes a change only if the resource still has this ETag; otherwise the error
// has code precondition_failed. Get the ETag, including its quotes, with [ReadMeta].
func IfMatch(etag string) CallOption {
	return func(o *callOptions) { o.ifMatch, o.matchGiven = etag, true }
}

// IfNoneMatch makes a read return [ErrNotModified] if the resource still has this ETag.
// For a list, that is the ETag of the first page. "" has no effect, so it can be used
// for the first read. Of the changes, only [Client.PutCategory] supports it, with "*".
func IfNoneMatch(etag string) CallOption {
	return func(o *callOptions) { o.ifNoneMatch = etag }
}

// IdempotencyKey identifies a request, so that it takes effect only once, however often it
// is sent within 24 hours, even by different processes. By default CreatePet,
// CreatePetBatch, PlaceOrder and AddPhoto use a random key for each call, which covers their
// own retries. Supply one if you may have to repeat the call itself, for example after a
// crash: 1 to 255 visible ASCII characters, the same for the same content.
func IdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.idempotencyKey, o.keyGiven = key, true }
}

// PageSize is how many entries of a list a request returns, 1 to 100. The default is 100,
// because every page is a request that counts.
func PageSize(entries int) CallOption {
	return func(o *callOptions) { o.pageSize = entries }
}

// FromCursor makes a list begin at a cursor that [Meta.NextCursor] returned for the
// same query, for programs that show one page at a time. "" has no effect.
func FromCursor(cursor string) CallOption {
	return func(o *callOptions) { o.cursor = cursor }
}

// OnePage makes a list end after its first page. [Meta.NextCursor] says where the next one
// begins. A page can have fewer entries than its size, or none, although others follow.
func OnePage() CallOption {
	return func(o *callOptions) { o.onePage = true }
}

// ReadMeta fills m from the headers of the response. For a list, that is the latest
// page. After an error it is the latest response; if there was none, all fields except
// Attempts are zero.
func ReadMeta(m *Meta) CallOption {
	return func(o *callOptions) { o.meta = m }
}

// Meta is the information in a response outside its body.
type Meta struct {
	Status    int    // HTTP status
	ETag      string // for [IfMatch] and [IfNoneMatch]; "" if there is none
	RequestID string // identifies the request in the server's log
	Replayed  bool   // this is the response to an earlier request with the same [IdempotencyKey]
	Resent    bool   // the response to an earlier attempt was lost, and Replayed may mean that one
	BanLifted bool   // [Client.UnbanKey] lifted a ban
	Attempts  int    // the number of attempts
	// NextCursor is where the next page of a list begins; "" after the last page. See
	// [FromCursor].
	NextCursor string
	RateLimit  RateLimit
	// Age is how old the counts of [Client.GetInventory] are, in whole seconds.
	Age time.Duration
}

// RateLimit contains the rate limit headers of a response. They describe the minute,
// unless the day has fewer requests left.
type RateLimit struct {
	Limit     int64
	Remaining int64
	Reset     time.Time // by the server's clock
}
