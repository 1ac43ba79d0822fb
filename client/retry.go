package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"animalstore"
)

// failure is why an attempt failed, and what follows from that.
type failure struct {
	err       error
	status    int              // 0 without an answer
	code      animalstore.Code // "" unless the service told
	passing   bool             // another attempt may fare better
	untouched bool             // this attempt certainly changed nothing
	after     time.Duration    // what Retry-After asks for
}

// answersKept is how long a change may be sent again after an attempt that may
// have been carried out. The service remembers an Idempotency-Key for 24 hours,
// and clocks and networks take their time.
const answersKept = 23 * time.Hour

// do makes a call: sends it until it succeeds, cannot succeed or may not be sent
// again.
func (c *Client) do(ctx context.Context, k *call) error {
	var open time.Time // when first an attempt was made that may have been carried out
	for attempt := 1; ; attempt++ {
		maxWait := c.maxWait
		if !open.IsZero() {
			maxWait = min(maxWait, answersKept-time.Since(open))
		}
		t, err := c.gate.enter(ctx, maxWait, func(d time.Duration, why error) {
			c.onWait(Wait{k.operation, attempt - 1, d, named(k, why)})
		})
		if err != nil {
			return k.unsettled(named(k, err), !open.IsZero())
		}
		sent := time.Now()
		if k.meta != nil {
			k.meta.Attempts = attempt
		}
		f := c.attempt(ctx, k, t)
		if f == nil {
			return nil
		}
		if !open.IsZero() && k.settles(f) {
			if k.isDone(f) {
				return nil
			}
			open = time.Time{}
		}
		if open.IsZero() && k.changes() && !f.untouched {
			open = sent
		}
		if err := c.pause(ctx, k, f, attempt, open); err != nil {
			return k.unsettled(err, !open.IsZero())
		}
	}
}

// isDone reports whether a failure shows that an attempt before it succeeded.
// A pet that may have been removed by a former attempt, and is not there, is
// removed.
func (k *call) isDone(f *failure) bool {
	return k.method == http.MethodDelete && f.code == animalstore.PetNotFound
}

// settles reports whether a failure tells what became of the attempts before it
// that had no answer.
func (k *call) settles(f *failure) bool {
	switch {
	case f.code == "" || f.status >= 500 || f.status == http.StatusTooManyRequests:
		return false
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return false // the service looked no further
	case k.repeat == replayed:
		return true // it would have given the answer it gave before
	}
	// An id is not given twice, so a pet that can still refuse was not
	// removed.
	return k.method == http.MethodDelete
}

// unsettled marks the failure of a change that may have been made nevertheless.
func (k *call) unsettled(err error, open bool) error {
	if !open {
		return err
	}
	return fmt.Errorf("%w; %w", err, ErrOutcomeUnknown)
}

// pause waits until a call may be sent again. It returns the error to give up
// with, if it may not.
func (c *Client) pause(ctx context.Context, k *call, f *failure, attempt int, open time.Time) error {
	switch {
	case !f.passing:
		return f.err
	case k.repeat == harmful && !f.untouched:
		return f.err
	case attempt >= c.maxAttempts:
		if attempt == 1 {
			return f.err
		}
		return fmt.Errorf("%w (after %d attempts)", f.err, attempt)
	case f.after > c.maxWait:
		return f.err
	}
	wait := f.after + c.jitter(attempt)
	resume := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && resume.After(deadline) {
		return fmt.Errorf("%w (to wait %v for another attempt would take longer than the context allows)", f.err, wait.Round(time.Millisecond))
	}
	if !open.IsZero() && resume.Sub(open) > answersKept {
		return f.err
	}
	if ctx.Err() == nil {
		c.onWait(Wait{k.operation, attempt, wait, f.err})
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w while waiting to send it again after: %w", k.operation, ctx.Err(), f.err)
	}
}

// jitter is how long to back off after so many attempts, beyond what the service
// asks for. It is spread over the whole span, so that clients that failed
// together do not come back together.
func (c *Client) jitter(attempts int) time.Duration {
	span := c.backoffMax
	if doublings := attempts - 1; doublings < 32 && c.backoffBase<<doublings > 0 {
		span = min(span, c.backoffBase<<doublings)
	}
	return time.Duration(c.random() * float64(span))
}

// unanswered tells what it means that a request got no answer. unused is whether
// there was no connection to send it on.
func (c *Client) unanswered(timed context.Context, k *call, err error, unused bool) *failure {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // it repeats the address, query and all
	}
	f := &failure{untouched: unused || neverSent(err)}
	if timed.Err() != nil {
		err = context.Cause(timed)
		f.passing = err == errNoAnswer
	} else {
		f.passing = !hopeless(err)
	}
	f.err = fmt.Errorf("%s: %s %s: %w", k.operation, k.method, c.base.Redacted(), err)
	return f
}

// neverSent reports whether no connection could be made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// hopeless reports whether a request would fail the same way again.
func hopeless(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		dns         *net.DNSError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.As(err, &dns) && dns.IsNotFound
}

// named says which call an error of the gate is about.
func named(k *call, err error) error {
	var limit *RateLimitError
	if !errors.As(err, &limit) {
		return fmt.Errorf("%s: %w", k.operation, err)
	}
	e := *limit
	e.Err = fmt.Errorf("%s: %w", k.operation, limit.Err)
	return &e
}
