package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"animalstore"
)

// failure is why an attempt failed, and what that means for a retry.
type failure struct {
	err       error
	status    int              // 0 without a response
	code      animalstore.Code // "" unless the service sent one
	retryable bool             // another attempt may succeed
	unchanged bool             // this attempt certainly changed nothing
	after     time.Duration    // from Retry-After
	noStream  bool             // a stream can't be used, but long polls can
}

// retryWindow is how long a change may be retried after an attempt that may have
// succeeded. The service stores an Idempotency-Key for 24 hours; the difference is a
// margin for clocks and networks.
const retryWindow = 23 * time.Hour

// send sends a call until it succeeds or must not be retried.
func (c *Client) send(ctx context.Context, k *call) error {
	var unresolved time.Time // when the first possibly successful attempt was sent
	for {
		maxWait := c.maxWait
		if !unresolved.IsZero() {
			maxWait = min(maxWait, retryWindow-time.Since(unresolved))
		}
		t, err := c.gate.enter(ctx, k.wait > 0 || k.stream != nil, maxWait, func(d time.Duration, why error) {
			c.onWait(Wait{k.name, k.attempt, d, withOperation(k, why)})
		})
		if err != nil {
			return k.markUnknown(withOperation(k, err), !unresolved.IsZero())
		}
		sent := time.Now()
		k.attempt++
		if k.meta != nil {
			k.meta.Attempts = k.attempt
		}
		f := c.attempt(ctx, k, t)
		if f == nil {
			return nil
		}
		if f.noStream {
			return errNoStream
		}
		if !unresolved.IsZero() && k.settles(f) {
			if k.isDone(f) {
				return nil
			}
			unresolved = time.Time{}
		}
		if unresolved.IsZero() && k.changes() && !f.unchanged {
			unresolved, k.resent = sent, true
		}
		if err := c.pause(ctx, k, f, k.attempt, unresolved); err != nil {
			return k.markUnknown(err, !unresolved.IsZero())
		}
	}
}

// isDone reports whether a failure shows that an earlier attempt succeeded: if an
// earlier attempt may have removed a pet and the pet doesn't exist, it was removed.
func (k *call) isDone(f *failure) bool {
	return k.method == http.MethodDelete && (f.code == animalstore.PetNotFound || f.code == animalstore.PhotoNotFound)
}

// settles reports whether a failure shows the outcome of the earlier attempts that
// got no response.
func (k *call) settles(f *failure) bool {
	switch {
	case f.code == "" || f.status >= 500 || f.status == http.StatusTooManyRequests:
		return false
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return false // the service checked nothing else
	case k.repeat == replayed:
		return true // otherwise it would have repeated the earlier response
	}
	// Ids are never reused, so a pet that can't be removed now wasn't removed
	// before. A revoked key remains, with another ETag.
	return k.method == http.MethodDelete && !(k.name == "revokeKey" && f.code == animalstore.PreconditionFailed)
}

// markUnknown marks the error of a change that may still have been made.
func (k *call) markUnknown(err error, unresolved bool) error {
	if !unresolved {
		return err
	}
	return fmt.Errorf("%w; %w", err, ErrOutcomeUnknown)
}

// pause waits until a call may be retried, or returns the call's error if it may not.
func (c *Client) pause(ctx context.Context, k *call, f *failure, attempt int, unresolved time.Time) error {
	switch {
	case !f.retryable && !(k.endless && f.status >= http.StatusInternalServerError):
		return f.err
	case k.repeat == harmful && !f.unchanged:
		return f.err
	case attempt >= c.maxAttempts && !k.endless:
		if attempt == 1 {
			return f.err
		}
		return fmt.Errorf("%w (after %d attempts)", f.err, attempt)
	case f.status > 0 && f.after > c.maxWait: // otherwise a stream has ended
		return f.err
	}
	wait := f.after + c.jitter(attempt)
	resume := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && resume.After(deadline) {
		return fmt.Errorf("%w (the next attempt, in %v, would be after the deadline)", f.err, wait.Round(time.Millisecond))
	}
	if !unresolved.IsZero() && resume.Sub(unresolved) > retryWindow {
		return f.err
	}
	if ctx.Err() == nil {
		c.onWait(Wait{k.name, attempt, wait, f.err})
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return k.wrap(fmt.Errorf("%w while waiting to retry after: %w", ctx.Err(), f.err))
	}
}

// jitter is how long to back off after this number of attempts, in addition to
// Retry-After. It's a random part of the whole span, so that clients that failed
// together don't retry together.
func (c *Client) jitter(attempts int) time.Duration {
	span := c.backoffMax
	if doublings := attempts - 1; doublings < 32 && c.backoffBase<<doublings > 0 {
		span = min(span, c.backoffBase<<doublings)
	}
	return rand.N(span)
}

// noResponse returns the failure of a request without a response. notConnected says
// that there was no connection to send it on.
func (c *Client) noResponse(timed context.Context, k *call, err error, notConnected bool) *failure {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the wrapper names the request differently
	}
	f := &failure{unchanged: notConnected}
	if timed.Err() != nil {
		err = context.Cause(timed)
		f.retryable = err == errAttemptTimeout
		f.noStream = k.stream != nil && f.retryable
	} else {
		f.retryable = !isPermanent(err)
	}
	f.err = k.wrap(err)
	return f
}

// isPermanent reports whether a retry would fail in the same way.
func isPermanent(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		dns         *net.DNSError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.As(err, &dns) && dns.IsNotFound
}

// withOperation adds the operation and its address to an error of the gate.
func withOperation(k *call, err error) error {
	var limit *RateLimitError
	if !errors.As(err, &limit) {
		return k.wrap(err)
	}
	e := *limit
	e.Err = k.wrap(limit.Err)
	return &e
}
