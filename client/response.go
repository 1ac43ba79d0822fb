package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"animalstore"
)

func (k *call) readMeta(res *http.Response) {
	k.requestID = excerpt(res.Header.Get("X-Request-Id"))
	if k.meta == nil {
		return
	}
	limit, _ := readRateLimit(res.Header)
	k.meta.Status = res.StatusCode
	k.meta.ETag = res.Header.Get("ETag")
	k.meta.RequestID = res.Header.Get("X-Request-Id")
	k.meta.Replayed = res.Header.Get("Idempotent-Replayed") == "true"
	k.meta.Resent = k.resent
	k.meta.BanLifted = res.Header.Get("Ban-Lifted") == "true"
	k.meta.RateLimit = limit
	if age, err := strconv.ParseUint(res.Header.Get("Age"), 10, 31); err == nil {
		k.meta.Age = time.Duration(age) * time.Second
	}
	if next, err := url.Parse(findNext(res.Header)); err == nil {
		k.meta.NextCursor = next.Query().Get("cursor")
	}
}

// readRateLimit reads the three rate limit headers.
func readRateLimit(h http.Header) (RateLimit, bool) {
	limit, err1 := strconv.ParseInt(h.Get("X-Ratelimit-Limit"), 10, 64)
	remaining, err2 := strconv.ParseInt(h.Get("X-Ratelimit-Remaining"), 10, 64)
	reset, err3 := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || limit < 0 || remaining < 0 {
		return RateLimit{}, false
	}
	return RateLimit{limit, remaining, time.Unix(reset, 0).UTC()}, true
}

// readResponse reads the response to a call. It returns nil if the call succeeded.
func (c *Client) readResponse(ctx context.Context, k *call, res *http.Response, body []byte, readErr error) *failure {
	status := res.StatusCode
	f := &failure{status: status, after: retryAfter(res.Header)}
	switch {
	case status == http.StatusNotModified && k.ifNoneMatch != "":
		f.err = ErrNotModified
		return f
	case readErr != nil:
		f.err = c.unexpected(k, res, body, fmt.Errorf("reading the body: %w", readErr))
		f.retryable = ctx.Err() == nil && !errors.Is(readErr, errTooLarge)
		f.unchanged = status >= 400 && status < 500
	case status >= 300 && status < 400 && res.Header.Get("Location") != "":
		f.err = c.unexpected(k, res, nil, fmt.Errorf("redirect to %q not followed, to keep the key private: is the base URL right?", excerpt(c.conceal(res.Header.Get("Location")))))
		f.unchanged = true
	case status >= 400:
		c.readErrorResponse(f, k, res, body)
	default:
		if f.retryable, f.err = c.readSuccess(k, res, body); f.err == nil {
			return nil
		}
	}
	if status == http.StatusTooManyRequests {
		f.err = rateLimited(f, res)
		f.retryable, f.unchanged = true, true
	}
	f.noStream = k.stream != nil && (status < 300 || f.code == animalstore.TooManyStreams)
	return f
}

// readSuccess reads the response to a call that succeeded. retryable is whether a retry
// may get a good response.
func (c *Client) readSuccess(k *call, res *http.Response, body []byte) (retryable bool, err error) {
	if k.decode == nil && res.StatusCode == http.StatusNoContent {
		return false, nil
	}
	expected := res.StatusCode == http.StatusOK || res.StatusCode == http.StatusCreated
	if k.accepted {
		expected = res.StatusCode == http.StatusAccepted
	}
	if k.decode == nil || !expected {
		return false, c.unexpected(k, res, body, errors.New("unexpected status"))
	}
	if retryable, err := k.decode(mediaType(res.Header), body); err != nil {
		return retryable, c.unexpected(k, res, body, err)
	}
	if k.next, err = c.nextLink(res); err != nil {
		return false, c.unexpected(k, res, nil, err)
	}
	return false, nil
}

// readErrorResponse reads an error response into f.
func (c *Client) readErrorResponse(f *failure, k *call, res *http.Response, body []byte) {
	var e struct {
		Code    animalstore.Code
		Message string
	}
	if mediaType(res.Header) != "application/json" || json.Unmarshal(body, &e) != nil || e.Code == "" || e.Message == "" {
		f.err = c.unexpected(k, res, body, errors.New("the body is not an error from the service"))
		f.retryable = f.status >= 500 // a problem between here and the service
		f.unchanged = f.status < 500
		return
	}
	f.code = e.Code
	f.err = &Error{
		Operation: k.name,
		Request:   k.request,
		Status:    f.status,
		RequestID: k.requestID,
		Err:       &animalstore.Error{Code: e.Code, Message: c.conceal(e.Message)},
	}
	f.retryable = f.status == http.StatusServiceUnavailable
	f.unchanged = f.status < 500 || unchangedCodes[e.Code] && !k.partial
}

// unchangedCodes are the codes of 503 that guarantee that nothing was changed. New
// codes count only once they're listed here. The code unavailable isn't listed:
// PostgreSQL also returns it for a change whose outcome is unknown.
var unchangedCodes = map[animalstore.Code]bool{
	animalstore.StorageFull:  true,
	animalstore.Overloaded:   true,
	animalstore.ShuttingDown: true,
}

func (c *Client) unexpected(k *call, res *http.Response, body []byte, err error) error {
	if k.secret && res.StatusCode < 400 {
		body = nil
	}
	return &ResponseError{
		Operation:   k.name,
		Request:     k.request,
		Status:      res.StatusCode,
		ContentType: excerpt(res.Header.Get("Content-Type")),
		Excerpt:     excerpt(c.conceal(string(body))),
		Err:         err,
	}
}

// rateLimited returns the error for a response with status 429.
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

// mediaType is the type of a body, without its parameters.
func mediaType(h http.Header) string {
	name, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return name
}

// retryAfter reads the seconds in the Retry-After header. It returns 0 if there are none.
func retryAfter(h http.Header) time.Duration {
	const longest = 366 * 24 * 60 * 60
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), longest)) * time.Second
}
