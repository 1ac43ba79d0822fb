package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"animalstore"
)

// maxResponse is the maximum size of a response, in bytes: somewhat more than the largest
// image, and many times the size of the largest page.
const maxResponse = 16 << 20

// repeat is the effect of sending a request again. The zero value is for requests that
// only read, or that lead to the same state again.
type repeat int

const (
	replayed repeat = iota + 1 // the Idempotency-Key gets the first response again
	harmful                    // the change is made again
)

// call is one call of an operation, which may take several attempts.
type call struct {
	operation string // the method that was called: operationId in the OpenAPI document, or findPet
	method    string
	path      string // below /v1, with the query
	body      any    // nil: none
	name      string // the name in the body, which must be valid UTF-8
	repeat    repeat
	// conditional is whether the operation supports If-Match.
	conditional bool
	accepted    bool          // success is 202: the service does it later
	creates     bool          // it can create the resource at its path, and supports If-None-Match: *
	partial     bool          // any 5xx may mean that a part of the change was made
	secret      bool          // the response contains a secret, which no error may show
	endless     bool          // no limit on the number of attempts
	stream      *follower     // gets the events of a stream, instead of decode
	wait        time.Duration // how long the service may deliberately wait
	extraTime   time.Duration // for an attempt, in addition to the usual
	callOptions

	request     string // the HTTP method and the full URL, for errors
	attempt     int    // the number of the latest attempt
	requestID   string // of the latest response
	resent      bool   // an earlier attempt may have succeeded, but its response was lost
	content     []byte // the encoded body, the same bytes in every attempt
	contentType string // of content, unless it is JSON
	decode      func(body []byte) error
	decodeImage func(contentType string, body []byte) error // instead of decode
	next        string                                      // for a list, the path of the next page
}

// changes reports whether the call can change anything.
func (k *call) changes() bool { return k.method != http.MethodGet }

// prepare applies the options and encodes the body.
func (k *call) prepare(options []CallOption) error {
	for _, option := range options {
		option(&k.callOptions)
	}
	if k.meta != nil {
		*k.meta = Meta{}
	}
	if err := k.checkOptions(); err != nil {
		return err
	}
	if k.repeat == replayed && !k.keyGiven {
		k.idempotencyKey = rand.Text()
	}
	if k.body == nil {
		return nil
	}
	if !utf8.ValidString(k.name) { // encoding/json would replace invalid bytes
		return fmt.Errorf("%s: %w", k.operation, animalstore.Errorf(animalstore.ValidationFailed, "name must be valid UTF-8"))
	}
	var err error
	if k.content, err = animalstore.EncodeJSON(k.body); err != nil {
		return fmt.Errorf("%s: encode the request: %w", k.operation, err)
	}
	return nil
}

// checkOptions returns an error for an option that would have no effect, because the
// caller relies on it.
func (k *call) checkOptions() error {
	switch {
	case k.matchGiven && k.ifMatch == "":
		return fmt.Errorf("%s: IfMatch needs an ETag: without one the change would be unconditional", k.operation)
	case k.keyGiven && k.repeat != replayed:
		return fmt.Errorf("%s: the service doesn't support Idempotency-Key for this", k.operation)
	case k.ifNoneMatch != "" && k.endless:
		return fmt.Errorf("%s: If-None-Match can't be followed", k.operation)
	case k.ifMatch != "" && k.changes() && !k.conditional:
		return fmt.Errorf("%s: the service doesn't support If-Match for this", k.operation)
	case k.ifNoneMatch != "" && k.changes() && !(k.creates && k.ifNoneMatch == "*"):
		return fmt.Errorf("%s: If-None-Match is only for reads, and * for PutCategory", k.operation)
	}
	return nil
}

// send makes a call whose response is a T. check reports whether a decoded value is
// plausible.
func send[T any](ctx context.Context, c *Client, k *call, options []CallOption, check func(*T) bool) (T, error) {
	var result, none T
	k.decode = func(body []byte) error {
		result = none // discard an earlier attempt's result
		if err := json.Unmarshal(body, &result); err != nil {
			return fmt.Errorf("the body is not the expected JSON: %w", err)
		}
		if !check(&result) {
			return errors.New("the body lacks required fields")
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

// sendNoContent makes a call whose response has no body.
func (c *Client) sendNoContent(ctx context.Context, k *call, options []CallOption) error {
	if err := k.prepare(options); err != nil {
		return err
	}
	return c.do(ctx, k)
}

// request creates the HTTP request of a call.
func (c *Client) request(ctx context.Context, k *call) (*http.Request, error) {
	var body io.Reader
	if k.content != nil {
		body = bytes.NewReader(k.content)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.urlOf(k.path), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.operation, err)
	}
	h := req.Header
	c.authorize(h)
	h.Set("Accept", "application/json")
	if k.decodeImage != nil {
		h.Set("Accept", "image/*, application/json") // errors are JSON
	}
	if k.stream != nil {
		k.stream.setHeaders(h)
	}
	h.Set("User-Agent", c.userAgent)
	switch {
	case k.content == nil:
	case k.contentType != "":
		h.Set("Content-Type", k.contentType)
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

// errAttemptTimeout ends an attempt that takes too long.
var errAttemptTimeout = errors.New("no response in time")

// attempt sends a call once. It returns nil if it succeeded.
func (c *Client) attempt(ctx context.Context, k *call, t ticket) *failure {
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.attemptTimeout+k.wait+k.extraTime, func() { cancel(errAttemptTimeout) })
	defer timer.Stop()
	var trace connTrace
	req, err := c.request(httptrace.WithClientTrace(timed, trace.clientTrace()), k)
	if err != nil {
		c.gate.returnUnsent(t)
		return &failure{err: err, unchanged: true}
	}
	began := time.Now()
	res, err := c.httpFor(k).Do(req)
	if err != nil {
		c.report(k, req, nil, began)
		f := c.noResponse(timed, k, err, trace.notConnected())
		if f.unchanged {
			c.gate.returnUnsent(t)
		} else {
			c.gate.returnUnanswered(t)
		}
		return f
	}
	defer res.Body.Close()
	if k.stream != nil && isEventStream(res) {
		k.readMeta(res)
		c.gate.returnAnswered(t, res, nil)
		c.report(k, req, res, began)
		return k.stream.read(timed, k, res.Body, timer)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	if err == nil && len(body) > maxResponse {
		body, err = body[:maxResponse], errTooLarge
	}
	k.readMeta(res)
	c.report(k, req, res, began)
	if err != nil && timed.Err() != nil {
		err = context.Cause(timed)
	}
	f := c.readResponse(ctx, k, res, body, err)
	var refusal *RateLimitError
	if f != nil && !f.noStream { // other requests are still allowed
		errors.As(f.err, &refusal)
	}
	c.gate.returnAnswered(t, res, refusal)
	return f
}

// httpFor is the HTTP client for a call. The timeout of the user's doesn't end a stream.
func (c *Client) httpFor(k *call) *http.Client {
	if k.stream == nil {
		return c.http
	}
	streams := *c.http
	streams.Timeout = 0
	return &streams
}

// report tells the user's log about an attempt. res is nil if there was no response.
func (c *Client) report(k *call, req *http.Request, res *http.Response, began time.Time) {
	a := CallAttempt{Operation: k.operation, Method: k.method, Path: req.URL.RequestURI(), Number: k.attempt, Duration: time.Since(began)}
	if res != nil {
		a.Status, a.RequestID = res.StatusCode, k.requestID
	}
	c.onAttempt(a)
}

var errTooLarge = errors.New("the body is larger than 16 MiB")

// connTrace observes whether a request got a connection.
type connTrace struct {
	requested, connected atomic.Bool
}

func (t *connTrace) clientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.requested.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Store(true) },
	}
}

// notConnected reports that there was no connection, so nothing can have been sent.
// It's false if that isn't known, as with a RoundTripper without tracing.
func (t *connTrace) notConnected() bool { return t.requested.Load() && !t.connected.Load() }
