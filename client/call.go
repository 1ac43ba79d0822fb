package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"animalstore"
)

// maxAnswer is the most that is read of an answer, in bytes: several times what
// the largest page can have.
const maxAnswer = 8 << 20

// repeat is what sending a request a second time does.
type repeat int

const (
	// harmless: it reads, or brings about the same state once more.
	harmless repeat = iota
	// replayed: an Idempotency-Key makes the service give the first answer.
	replayed
	// harmful: it is done as often as it is sent.
	harmful
)

// call is one operation on its way: what is sent, as often as it takes.
type call struct {
	operation string // operationId in the OpenAPI document
	method    string
	path      string // under /v1, with the query
	body      any    // nil: none
	repeat    repeat
	// conditional changes look at If-Match.
	conditional bool
	secret      bool // the answer has a secret in it, which no error may show
	callOptions

	content []byte // the body, encoded once: a retry must be the same to the byte
	decode  func(body []byte) error
	next    string // of a list: where its next page is
}

// changes reports whether the call can change anything.
func (k *call) changes() bool { return k.method != http.MethodGet }

// prepare takes over the options, and refuses those that would have no effect: a
// caller who sets one relies on it.
func (k *call) prepare(options []CallOption) error {
	for _, option := range options {
		option(&k.callOptions)
	}
	switch {
	case k.keyGiven && k.repeat != replayed:
		return fmt.Errorf("%s: the service takes no Idempotency-Key for this", k.operation)
	case k.ifMatch != "" && k.changes() && !k.conditional:
		return fmt.Errorf("%s: the service does not look at If-Match for this", k.operation)
	case k.ifNoneMatch != "" && k.changes():
		return fmt.Errorf("%s: If-None-Match is for reads", k.operation)
	}
	if k.repeat == replayed && !k.keyGiven {
		k.idempotencyKey = rand.Text()
	}
	if k.body == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(k.body); err != nil {
		return fmt.Errorf("%s: encode the request: %w", k.operation, err)
	}
	k.content = b.Bytes()
	return nil
}

// send makes a call whose answer is a T. check refuses what decodes but cannot
// be one.
func send[T any](ctx context.Context, c *Client, k *call, options []CallOption, check func(*T) bool) (T, error) {
	var result, none T
	k.decode = func(body []byte) error {
		result = none // of an attempt before
		if err := json.Unmarshal(body, &result); err != nil {
			return fmt.Errorf("the body is not the JSON it should be: %w", err)
		}
		if !check(&result) {
			return errors.New("the body lacks what it should have")
		}
		return nil
	}
	if err := k.prepare(options); err != nil {
		return none, err
	}
	if err := c.do(ctx, k); err != nil {
		return none, err
	}
	return result, nil
}

// request makes the HTTP request of a call.
func (c *Client) request(ctx context.Context, k *call) (*http.Request, error) {
	var body io.Reader
	if k.content != nil {
		body = bytes.NewReader(k.content)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.base.String()+k.path, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.operation, err)
	}
	h := req.Header
	c.authorize(h)
	h.Set("Accept", "application/json")
	h.Set("User-Agent", c.userAgent)
	switch {
	case k.content == nil:
	case k.method == http.MethodPatch:
		h.Set("Content-Type", "application/merge-patch+json")
	default:
		h.Set("Content-Type", "application/json")
	}
	if k.ifMatch != "" {
		h.Set("If-Match", k.ifMatch)
	}
	if k.ifNoneMatch != "" {
		h.Set("If-None-Match", k.ifNoneMatch)
	}
	if k.repeat == replayed {
		h.Set("Idempotency-Key", k.idempotencyKey)
	}
	return req, nil
}

// attempt sends a call once. It returns nil when that succeeded.
func (c *Client) attempt(ctx context.Context, k *call, t ticket) *failure {
	timed, cancel := context.WithTimeout(ctx, c.attemptTimeout)
	defer cancel()
	var line line
	req, err := c.request(httptrace.WithClientTrace(timed, line.trace()), k)
	if err != nil {
		c.gate.unsent(t)
		return &failure{err: err, untouched: true}
	}
	res, err := c.http.Do(req)
	if err != nil {
		f := c.unanswered(ctx, timed, k, err, line.unused())
		if f.untouched {
			c.gate.unsent(t)
		} else {
			c.gate.lost(t)
		}
		return f
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		body, err = body[:maxAnswer], errTooLarge
	}
	k.readMeta(res)
	f := c.judge(ctx, k, res, body, err)
	var refusal *RateLimitError
	if f != nil {
		errors.As(f.err, &refusal)
	}
	c.gate.answered(t, res, refusal)
	return f
}

var errTooLarge = fmt.Errorf("the body has more than %d MiB", maxAnswer>>20)

// line watches whether a request came as far as a connection.
type line struct{ asked, got atomic.Bool }

func (l *line) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { l.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { l.got.Store(true) },
	}
}

// unused reports that there was no connection, so nothing can have been sent. It
// is false where that is not known, as with a RoundTripper that traces nothing.
func (l *line) unused() bool { return l.asked.Load() && !l.got.Load() }

func (k *call) readMeta(res *http.Response) {
	if k.meta == nil {
		return
	}
	limit, _ := readRateLimit(res.Header)
	k.meta.Status = res.StatusCode
	k.meta.ETag = res.Header.Get("ETag")
	k.meta.RequestID = res.Header.Get("X-Request-Id")
	k.meta.Replayed = res.Header.Get("Idempotent-Replayed") == "true"
	k.meta.RateLimit = limit
}

// readRateLimit reads the three headers.
func readRateLimit(h http.Header) (RateLimit, bool) {
	limit, err1 := strconv.ParseInt(h.Get("X-Ratelimit-Limit"), 10, 64)
	remaining, err2 := strconv.ParseInt(h.Get("X-Ratelimit-Remaining"), 10, 64)
	reset, err3 := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || limit < 0 || remaining < 0 {
		return RateLimit{}, false
	}
	return RateLimit{limit, remaining, time.Unix(reset, 0).UTC()}, true
}

// judge tells what an answer means. It is nil for a success.
func (c *Client) judge(ctx context.Context, k *call, res *http.Response, body []byte, readErr error) *failure {
	status := res.StatusCode
	f := &failure{status: status, after: retryAfter(res.Header)}
	switch {
	case status == http.StatusNotModified && k.ifNoneMatch != "":
		f.err = ErrNotModified
		return f
	case readErr != nil:
		if ctx.Err() != nil {
			readErr = ctx.Err()
		}
		f.err = c.oddAnswer(k, res, body, fmt.Errorf("reading the body: %w", readErr))
		f.passing = ctx.Err() == nil && readErr != errTooLarge
		f.untouched = status >= 400 && status < 500
	case status >= 300 && status < 400:
		f.err = c.oddAnswer(k, res, nil, fmt.Errorf("a redirect to %q, which is not followed, for the key is not for others: is the base URL right?", excerpt(c.conceal(res.Header.Get("Location")))))
		f.untouched = true
	case status >= 400:
		c.judgeError(f, k, res, body)
	default:
		if f.err = c.readSuccess(k, res, body); f.err == nil {
			return nil
		}
		f.passing = isJSON(res.Header) // other types come from somewhere else
	}
	if status == http.StatusTooManyRequests {
		f.err = rateLimited(f, res)
		f.passing, f.untouched = true, true
	}
	return f
}

// readSuccess reads the answer to a call that succeeded.
func (c *Client) readSuccess(k *call, res *http.Response, body []byte) error {
	if res.StatusCode == http.StatusNoContent && k.decode == nil {
		return nil
	}
	if k.decode == nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return c.oddAnswer(k, res, body, errors.New("another status was due"))
	}
	if !isJSON(res.Header) {
		return c.oddAnswer(k, res, body, fmt.Errorf("its type is %q, not JSON: is the base URL right?", excerpt(res.Header.Get("Content-Type"))))
	}
	if err := k.decode(body); err != nil {
		return c.oddAnswer(k, res, body, err)
	}
	next, err := c.nextLink(res)
	if err != nil {
		return c.oddAnswer(k, res, nil, err)
	}
	k.next = next
	return nil
}

// judgeError reads an answer that tells of an error.
func (c *Client) judgeError(f *failure, k *call, res *http.Response, body []byte) {
	var e struct {
		Code    animalstore.Code
		Message string
	}
	if !isJSON(res.Header) || json.Unmarshal(body, &e) != nil || e.Code == "" || e.Message == "" {
		f.err = c.oddAnswer(k, res, body, errors.New("it has no error of the service"))
		f.passing = f.status >= 500 // something on the way has trouble
		f.untouched = f.status < 500
		return
	}
	f.code = e.Code
	f.err = &Error{
		Operation: k.operation,
		Status:    f.status,
		RequestID: excerpt(res.Header.Get("X-Request-Id")),
		Err:       &animalstore.Error{Code: e.Code, Message: c.conceal(e.Message)},
	}
	f.passing = f.status == http.StatusServiceUnavailable
	f.untouched = f.status < 500 || nothingDone[e.Code]
}

// nothingDone are the codes of 503 that promise that nothing was changed. A code
// that may join them is not taken for one.
var nothingDone = map[animalstore.Code]bool{
	animalstore.Unavailable:  true,
	animalstore.StorageFull:  true,
	animalstore.Overloaded:   true,
	animalstore.ShuttingDown: true,
}

func (c *Client) oddAnswer(k *call, res *http.Response, body []byte, err error) error {
	if k.secret && res.StatusCode < 400 {
		body = nil
	}
	return &AnswerError{
		Operation:   k.operation,
		Status:      res.StatusCode,
		ContentType: excerpt(res.Header.Get("Content-Type")),
		Excerpt:     excerpt(c.conceal(string(body))),
		Err:         err,
	}
}

// rateLimited makes the error of an answer with status 429.
func rateLimited(f *failure, res *http.Response) error {
	limit, _ := readRateLimit(res.Header)
	return &RateLimitError{
		Window:     windowOf[f.code],
		Limit:      limit.Limit,
		Reset:      limit.Reset,
		RetryAfter: f.after,
		Err:        f.err,
	}
}

func isJSON(h http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}

// retryAfter reads the header of that name: seconds or a date. It is 0 where
// there is none.
func retryAfter(h http.Header) time.Duration {
	const longest = 366 * 24 * 60 * 60
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), longest)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now := time.Now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the two are by the same clock
	}
	return min(max(at.Sub(now), 0), longest*time.Second)
}

// sendOnly makes a call whose answer has no body.
func (c *Client) sendOnly(ctx context.Context, k *call, options []CallOption) error {
	if err := k.prepare(options); err != nil {
		return err
	}
	return c.do(ctx, k)
}
