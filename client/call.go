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
	"regexp"
	"sync/atomic"
	"time"

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

// operation is what a call asks of the service: a literal in each method.
type operation struct {
	name        string // of the method: operationId in the OpenAPI document, or findPet
	method      string // of HTTP
	path        string // below /v1, with the query
	body        any    // sent as JSON; nil: none
	picture     []byte // sent instead of a body
	repeat      repeat
	conditional bool          // it supports If-Match
	accepted    bool          // success is 202: the service does it later
	creates     bool          // it can create the resource at its path, and supports If-None-Match: *
	image       bool          // the response is an image
	partial     bool          // any 5xx may mean that a part of the change was made
	secret      bool          // the response contains a secret, which no error may show
	endless     bool          // no limit on the number of attempts
	stream      *follower     // gets the events of a stream, instead of a decoder
	wait        time.Duration // how long the service may deliberately wait
	extraTime   time.Duration // for an attempt, in addition to the usual
}

// call is one call of an operation, which may take several attempts.
type call struct {
	operation
	callOptions
	request     string // the HTTP method and the full URL, for errors
	content     []byte // the body, the same bytes in every attempt
	contentType string
	decode      decoder

	attempt   int    // the number of the latest attempt
	requestID string // of the latest response
	resent    bool   // an earlier attempt may have succeeded, but its response was lost
	next      string // for a list, the path of the next page
}

// decoder reads the body of a successful response; nil means that there is none. retryable
// is whether another attempt may get a good body: it may if this one is incomplete, but a
// different kind of response isn't from the service.
type decoder func(contentType string, body []byte) (retryable bool, err error)

// changes reports whether the call can change anything.
func (k *call) changes() bool { return k.method != http.MethodGet }

// wrap says which call an error is of.
func (k *call) wrap(err error) error { return fmt.Errorf("%s: %s: %w", k.name, k.request, err) }

// do makes a call.
func (c *Client) do(ctx context.Context, op operation, options []CallOption, decode decoder) (*call, error) {
	k := &call{operation: op, decode: decode, request: op.method + " " + c.urlOf(op.path)}
	for _, option := range options {
		option(&k.callOptions)
	}
	if k.meta != nil {
		*k.meta = Meta{}
	}
	if err := k.checkOptions(); err != nil {
		return k, err
	}
	if k.repeat == replayed && !k.keyGiven {
		k.idempotencyKey = rand.Text()
	}
	if err := k.encode(); err != nil {
		return k, fmt.Errorf("%s: %w", k.name, err)
	}
	return k, c.send(ctx, k)
}

// invalidText finds bytes that aren't UTF-8 in what encoding/json wrote: it replaces them by
// this escape sequence, but writes a valid U+FFFD as it is.
var invalidText = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ufffd`)

// encode encodes the body.
func (k *call) encode() (err error) {
	switch {
	case k.picture != nil:
		k.content, k.contentType = k.picture, http.DetectContentType(k.picture)
		return nil
	case k.body == nil:
		return nil
	case k.method == http.MethodPatch:
		k.contentType = "application/merge-patch+json"
	default:
		k.contentType = "application/json"
	}
	k.content, err = animalstore.EncodeJSON(k.body)
	if err == nil && invalidText.Match(k.content) {
		err = animalstore.Errorf(animalstore.ValidationFailed, "texts must be valid UTF-8")
	}
	return err
}

// checkOptions returns an error for an option that would have no effect, because the
// caller relies on it.
func (k *call) checkOptions() error {
	switch {
	case k.matchGiven && k.ifMatch == "":
		return fmt.Errorf("%s: IfMatch needs an ETag: without one the change would be unconditional", k.name)
	case k.keyGiven && k.repeat != replayed:
		return fmt.Errorf("%s: the service doesn't support Idempotency-Key for this", k.name)
	case k.ifNoneMatch != "" && k.endless:
		return fmt.Errorf("%s: If-None-Match can't be followed", k.name)
	case k.ifMatch != "" && k.changes() && !k.conditional:
		return fmt.Errorf("%s: the service doesn't support If-Match for this", k.name)
	case k.ifNoneMatch != "" && k.changes() && !(k.creates && k.ifNoneMatch == "*"):
		return fmt.Errorf("%s: If-None-Match is only for reads, and * for PutCategory", k.name)
	}
	return nil
}

// receive makes a call whose response is a T. check reports whether a decoded value is
// plausible.
func receive[T any](
	ctx context.Context, c *Client, op operation, options []CallOption, check func(*T) bool,
) (T, error) {
	result, _, err := receiveCall(ctx, c, op, options, check)
	return result, err
}

// receiveCall is receive for those who need more of the response than its body.
func receiveCall[T any](
	ctx context.Context, c *Client, op operation, options []CallOption, check func(*T) bool,
) (result T, k *call, err error) {
	k, err = c.do(ctx, op, options, func(contentType string, body []byte) (bool, error) {
		var decoded T
		if contentType != "application/json" {
			return false, fmt.Errorf("the type is %q, not JSON: is the base URL right?", contentType)
		}
		if err := json.Unmarshal(body, &decoded); err != nil {
			return true, fmt.Errorf("the body is not the expected JSON: %w", err)
		}
		if !check(&decoded) {
			return true, errors.New("the body lacks required fields")
		}
		result = decoded
		return false, nil
	})
	return result, k, err
}

// receiveNothing makes a call whose response has no body.
func (c *Client) receiveNothing(ctx context.Context, op operation, options []CallOption) error {
	_, err := c.do(ctx, op, options, nil)
	return err
}

// request creates the HTTP request of a call.
func (c *Client) request(ctx context.Context, k *call) (*http.Request, error) {
	var body io.Reader
	if k.content != nil {
		body = bytes.NewReader(k.content)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.urlOf(k.path), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	h := req.Header
	c.authorize(h)
	h.Set("Accept", "application/json")
	if k.image {
		h.Set("Accept", "image/*, application/json") // errors are JSON
	}
	h.Set("User-Agent", c.userAgent)
	if k.stream != nil {
		k.stream.setHeaders(h)
	}
	if k.content != nil {
		h.Set("Content-Type", k.contentType)
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
	res, err := c.http.Do(req)
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
	if k.stream != nil && res.StatusCode == http.StatusOK && mediaType(res.Header) == "text/event-stream" {
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

// report tells the user's log about an attempt. res is nil if there was no response.
func (c *Client) report(k *call, req *http.Request, res *http.Response, began time.Time) {
	a := CallAttempt{Operation: k.name, Method: k.method, Path: req.URL.RequestURI(), Number: k.attempt, Duration: time.Since(began)}
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
