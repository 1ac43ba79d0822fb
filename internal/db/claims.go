package db

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"animalstore"
)

const (
	// DeliveriesKept is how long deliveries are stored.
	DeliveriesKept = 30 * 24 * time.Hour
	// MaxInFlight is how many deliveries to one webhook are in progress at once.
	MaxInFlight = 8
	// AttemptTimeout is how long a receiver may take to respond.
	AttemptTimeout = 15 * time.Second
	// DisableAfter is how long a webhook may fail before it is disabled.
	DisableAfter = 5 * 24 * time.Hour
	// maxRetryAfter is how long a receiver can ask us to wait.
	maxRetryAfter = 24 * time.Hour
)

// RetryDelays are the times between one attempt and the next. A delivery with no
// delay left has failed.
var RetryDelays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// retryJitter is the part of a delay that is random, so that deliveries that failed
// together aren't tried again together.
const retryJitter = 0.2

// NextAttempt returns when to try again after this number of failed attempts, the last
// one at now. random is from 0 to 1 and makes the delay up to 10 % shorter or longer.
// retryAfter is how long the receiver asked us to wait, or 0. more is false if there is
// no next attempt.
func NextAttempt(attempts int, now animalstore.Time, random float64, retryAfter time.Duration) (at animalstore.Time, more bool) {
	if attempts < 1 || attempts > len(RetryDelays) {
		return animalstore.Time{}, false
	}
	delay := RetryDelays[attempts-1]
	delay += time.Duration(float64(delay) * retryJitter * (random - 0.5))
	delay = max(delay, min(retryAfter, maxRetryAfter))
	return animalstore.At(now.Add(delay)), true
}

// ClaimedDelivery is a delivery that this process has claimed, with all it takes to send
// it. It contains secrets and must not be logged.
type ClaimedDelivery struct {
	ID        int64
	WebhookID int64
	EventID   int64 // 0: a ping
	Type      animalstore.EventType
	Time      animalstore.Time // of the event
	Data      json.RawMessage
	Tries     int   // attempts since it was created or last retried by hand
	Retries   int64 // by hand, before it was claimed
	URL       string
	Secrets   []string         // one, or two while they are rotated
	Lease     animalstore.Time // no other worker may send it before this time
}

// ScanClaimed returns a function that scans the id, webhook_id, event_id, type, event_time,
// data, tries and retries of a delivery, and the url, the secret and, if it is still
// valid, the previous secret of its webhook.
func ScanClaimed(lease animalstore.Time) func(Row) (ClaimedDelivery, error) {
	return func(row Row) (ClaimedDelivery, error) {
		due := ClaimedDelivery{Lease: lease, Secrets: make([]string, 1)}
		var eventType, at int64
		var old string
		err := row.Scan(&due.ID, &due.WebhookID, &due.EventID, &eventType, &at, (*[]byte)(&due.Data),
			&due.Tries, &due.Retries, &due.URL, &due.Secrets[0], &old)
		due.Type, due.Time = DeliveryType(eventType), animalstore.AtMilli(at)
		if old != "" {
			due.Secrets = append(due.Secrets, old)
		}
		return due, err
	}
}

// String omits the secrets and the data.
func (d ClaimedDelivery) String() string {
	return fmt.Sprintf("delivery %d of %s to webhook %d", d.ID, d.MessageID(), d.WebhookID)
}

// GoString is String, for %#v.
func (d ClaimedDelivery) GoString() string { return d.String() }

// MessageID is the webhook-id header: the same in every attempt.
func (d *ClaimedDelivery) MessageID() string {
	if d.EventID == 0 {
		return "ping_" + strconv.FormatInt(d.ID, 10)
	}
	return "evt_" + strconv.FormatInt(d.EventID, 10)
}

// Body is what is sent.
func (d *ClaimedDelivery) Body() []byte {
	body := fmt.Appendf(nil, `{"type":%q,"timestamp":"%s","data":`, d.Type, d.Time)
	return append(append(body, d.Data...), '}')
}

// DeliveryResult is the outcome of an attempt.
type DeliveryResult struct {
	animalstore.Attempt
	Delivery *ClaimedDelivery
	State    animalstore.DeliveryState // after the attempt
	Next     animalstore.Time          // the next attempt, if State is pending
	Gone     bool                      // the receiver wants no more: disable the webhook
}

// Result returns what follows from an attempt. A ping is tried once. retryAfter and
// random are those of [NextAttempt].
func (d *ClaimedDelivery) Result(a animalstore.Attempt, random float64, retryAfter time.Duration) DeliveryResult {
	r := DeliveryResult{Attempt: a, Delivery: d, State: animalstore.DeliveryFailed}
	r.Gone = a.Status != nil && *a.Status == 410
	ended := animalstore.At(a.Time.Add(time.Duration(a.DurationMs) * time.Millisecond))
	switch {
	case a.Succeeded():
		r.State = animalstore.DeliveryDelivered
	case r.Gone || d.EventID == 0:
	default:
		if next, more := NextAttempt(d.Tries+1, ended, random, retryAfter); more {
			r.State, r.Next = animalstore.DeliveryPending, next
		}
	}
	return r
}

// WebhookWork is what the worker has to do.
type WebhookWork struct {
	Events bool // some events have not become deliveries yet
	Due    bool // some deliveries are due and may be claimed
	// Next is when a delivery becomes due or a claim ends, whichever is first. It is
	// zero if there is neither.
	Next animalstore.Time
	// Clock is the time by the clock that all processes share. It is zero if this
	// process is alone, so that its own clock will do.
	Clock animalstore.Time
}
