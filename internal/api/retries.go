package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// resumeWithin is how long after a request that wasn't completed the same body is a
// repetition of it.
const resumeWithin = 10 * time.Minute

// unfinishedRetry is a request to retry many deliveries that retried only some of them.
type unfinishedRetry struct {
	which   animalstore.DeliveryRetry
	retried int
	before  int64 // where to continue
	at      time.Time
}

// unfinishedRetries has the latest of each webhook. Those of other instances aren't known
// here: a repetition there begins with the newest delivery.
type unfinishedRetries struct {
	mu sync.Mutex
	of map[int64]unfinishedRetry
}

func (u *unfinishedRetries) put(webhookID int64, r unfinishedRetry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[webhookID] = r
}

// take removes and returns the request that one at now repeats. It returns a new one if
// there is none.
func (u *unfinishedRetries) take(webhookID int64, which animalstore.DeliveryRetry, now time.Time) unfinishedRetry {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.of[webhookID]
	delete(u.of, webhookID)
	if r.which != which || now.Sub(r.at) > resumeWithin {
		return unfinishedRetry{which: which}
	}
	return r
}

// retryDeliveries serves POST /v1/webhooks/{webhookId}/deliveries/retry.
func (s *Server) retryDeliveries(w http.ResponseWriter, r *request) error {
	which, err := decodeUnchecked(r, strictjson.DecodeDeliveryRetry)
	if err != nil {
		return err
	}
	now := s.Now()
	if err := which.Validate(animalstore.At(now)); err != nil {
		return err
	}
	id, err := webhookKind.pathID(r)
	if err != nil {
		return err
	}
	retry := s.retries.take(id, which, now)
	q := db.RetryQuery{WebhookID: id, DeliveryRetry: which, Before: retry.before}
	if which.State == animalstore.DeliveryFailed {
		q.Before = 0 // those retried have left this state, and newer ones may have failed
	}
	n, before, err := db.RetryAll(r.Context(), s.DB, q, animalstore.At(now))
	retry.retried += n
	switch {
	case err == nil:
		return writeJSON(w, http.StatusAccepted, animalstore.RetriedDeliveries{Deliveries: retry.retried})
	case retry.retried == 0 || errors.Is(err, db.ErrNotFound):
		return webhookKind.notFound(err)
	}
	retry.before, retry.at = before, now
	s.retries.put(id, retry)
	if !isTransient(err) {
		return err
	}
	some := animalstore.Errorf(animalstore.Unavailable, "%d deliveries are due, but not yet all that match: send the same request again to continue", retry.retried)
	return fmt.Errorf("%w: %w", some, err)
}

// isTransient reports whether a request failed because time ran out or the database
// couldn't be reached, so that repeating it helps.
func isTransient(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown)
}
