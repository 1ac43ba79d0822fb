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

// maxAnswer is the most that is read of an answer, in bytes: several times what
// the largest page can have.
const maxAnswer = 8 << 20

// repeat is what sending a request a second time does. The zero value is for
// one that reads or brings about the same state once more.
type repeat int

const (
	replayed repeat = iota + 1 // an Idempotency-Key gets the first answer again
	harmful                    // it is done as often as it is sent
)

// call is one operation on its way: what is sent, as often as it takes.
type call struct {
	operation string // operationId in the OpenAPI document
	method    string
	path      string // under /v1, with the query
	body      any    // nil: none
	name      string // in the body
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
	if k.meta != nil {
		*k.meta = Meta{}
	}
	switch {
	case k.matchGiven && k.ifMatch == "":
		return fmt.Errorf("%s: IfMatch needs an ETag: without one the change would be made whatever there is", k.operation)
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
	if !utf8.ValidString(k.name) { // JSON would have something else instead
		return fmt.Errorf("%s: %w", k.operation, animalstore.Errorf(animalstore.ValidationFailed, "name must be valid UTF-8"))
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

// sendOnly makes a call whose answer has no body.
func (c *Client) sendOnly(ctx context.Context, k *call, options []CallOption) error {
	if err := k.prepare(options); err != nil {
		return err
	}
	return c.do(ctx, k)
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

// errNoAnswer ends an attempt that takes too long.
var errNoAnswer = errors.New("no answer in time")

// attempt sends a call once. It returns nil when that succeeded.
func (c *Client) attempt(ctx context.Context, k *call, t ticket) *failure {
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.attemptTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	line := line{again: func() {
		timer.Stop() // this wait is not the service's fault
		if err := c.gate.resent(ctx, t, min(c.maxWait, answersKept)); err != nil {
			cancel(named(k, err))
		}
		timer.Reset(c.attemptTimeout)
	}}
	req, err := c.request(httptrace.WithClientTrace(timed, line.trace()), k)
	if err != nil {
		c.gate.unsent(t)
		return &failure{err: err, untouched: true}
	}
	res, err := c.http.Do(req)
	if err != nil {
		f := c.unanswered(timed, k, err, line.unused())
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
	if err != nil && timed.Err() != nil {
		err = context.Cause(timed)
	}
	f := c.judge(ctx, k, res, body, err)
	var refusal *RateLimitError
	if f != nil {
		errors.As(f.err, &refusal)
	}
	c.gate.answered(t, res, refusal)
	return f
}

var errTooLarge = fmt.Errorf("the body has more than %d MiB", maxAnswer>>20)

// line watches what becomes of a request on its way to a connection.
type line struct {
	asked, got atomic.Bool
	again      func() // called when the transport sends it again by itself
}

func (l *line) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			if l.asked.Swap(true) {
				l.again()
			}
		},
		GotConn: func(httptrace.GotConnInfo) { l.got.Store(true) },
	}
}

// unused reports that there was no connection, so nothing can have been sent. It
// is false where that is not known, as with a RoundTripper that traces nothing.
func (l *line) unused() bool { return l.asked.Load() && !l.got.Load() }
