package animalstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// DeliveryState says how far along the delivery of an event to a webhook is.
type DeliveryState string

const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // no attempt is left
)

// DeliveryStates are all states.
var DeliveryStates = []DeliveryState{DeliveryPending, DeliveryDelivered, DeliveryFailed}

// WebhookPing is the type of a delivery that isn't about an event, but lets an
// administrator try a webhook. A ping can also have the type of an event, with sample data.
const WebhookPing EventType = "webhook.ping"

// Delivery is the delivery of one event to one webhook.
type Delivery struct {
	ID            int64         `json:"id"`
	EventID       *int64        `json:"eventId"` // nil: a ping
	Type          EventType     `json:"type"`    // of the event or of the sample data, or WebhookPing
	State         DeliveryState `json:"state"`
	Attempts      []Attempt     `json:"attempts"`      // oldest first, at most MaxAttemptsShown
	NextAttemptAt Time          `json:"nextAttemptAt"` // zero unless pending
	CreatedAt     Time          `json:"createdAt"`
}

// DeliveryWithBody is a delivery and what is sent. The body is made from a copy of the event
// that is kept as long as the delivery.
type DeliveryWithBody struct {
	Delivery
	Body json.RawMessage `json:"body"`
}

// DeliveryRetry selects the deliveries that match all of its fields. A zero field matches
// all, but one has to be given.
type DeliveryRetry struct {
	State DeliveryState `json:"state,omitempty"` // pending or failed
	Since Time          `json:"since,omitzero"`  // created at this time or later
}

// RetriedDeliveries is the result of repeating many deliveries.
type RetriedDeliveries struct {
	Deliveries int `json:"deliveries"` // how many matched, and are due
}

// RetryStates are the states that a DeliveryRetry can select. Delivered ones
// are resent only when selecting by Since alone.
var RetryStates = []DeliveryState{DeliveryPending, DeliveryFailed}

// Validate checks r as of now.
func (r DeliveryRetry) Validate(now Time) error {
	switch {
	case r == DeliveryRetry{}:
		return Errorf(ValidationFailed, "state or since is required: say which deliveries to repeat")
	case r.State != "" && !slices.Contains(RetryStates, r.State):
		return Errorf(ValidationFailed, "state %s", MustBeOneOf(RetryStates))
	case r.Since.After(now.Time):
		return Errorf(ValidationFailed, "since must not be in the future: it is %s now", now)
	}
	return nil
}

// ParsePingType reads the type of a ping: one of [EventTypes], whose sample data is sent, or
// [WebhookPing].
func ParsePingType(s string) (EventType, bool) {
	t := EventType(s)
	return t, t == WebhookPing || slices.Contains(EventTypes, t)
}

// Attempt is one attempt to deliver.
type Attempt struct {
	Time       Time   `json:"time"`
	Status     *int   `json:"status"` // of the response; nil: there was none
	Error      Reason `json:"error"`  // why there was none
	DurationMs int64  `json:"durationMs"`
}

// Succeeded reports whether the receiver accepted the event.
func (a Attempt) Succeeded() bool { return a.Status != nil && *a.Status/100 == 2 }

// MaxAttemptsShown is how many attempts of a delivery are kept. More can only come from
// retries by hand.
const MaxAttemptsShown = 20

// AppendTo returns the attempts of a delivery after one more.
func (a Attempt) AppendTo(attempts []Attempt) []Attempt {
	attempts = append(attempts, a)
	return attempts[max(0, len(attempts)-MaxAttemptsShown):]
}

const (
	// DeliveriesKept is how long deliveries are stored.
	DeliveriesKept = 30 * 24 * time.Hour
	// MaxInFlight is how many deliveries to one webhook are under way at once.
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
func NextAttempt(attempts int, now Time, random float64, retryAfter time.Duration) (at Time, more bool) {
	if attempts < 1 || attempts > len(RetryDelays) {
		return Time{}, false
	}
	delay := RetryDelays[attempts-1]
	delay += time.Duration(float64(delay) * retryJitter * (random - 0.5))
	delay = max(delay, min(retryAfter, maxRetryAfter))
	return At(now.Add(delay)), true
}

// ClaimedDelivery is a delivery that this process has claimed, with all it takes to send
// it. It contains secrets and must not be logged.
type ClaimedDelivery struct {
	ID        int64
	WebhookID int64
	EventID   int64 // 0: a ping
	Type      EventType
	Time      Time // of the event
	Data      json.RawMessage
	Tries     int // attempts since it was created or last retried by hand
	URL       string
	Secrets   []string // one, or two while they are rotated
	Lease     Time     // until when nobody else sends it
	NextLease Time     // of a renewal that may or may not have been stored; zero: none
}

// Holds reports whether a stored lease is the one of this claim. Otherwise somebody else
// has claimed the delivery since.
func (d *ClaimedDelivery) Holds(lease Time) bool {
	return lease.Milli() == d.Lease.Milli() || !d.NextLease.IsZero() && lease.Milli() == d.NextLease.Milli()
}

// WebhookWork says which work for webhooks is pending.
type WebhookWork struct {
	Webhooks bool // there are any, in whatever state
	Events   bool // some events have not become deliveries yet
	Due      bool // some deliveries are due and may be claimed
	// Next is when a delivery becomes due or a claim ends, whichever is first. It is
	// zero if there is neither.
	Next Time
	// Clock is the time by the clock that all processes share. It is zero if this
	// process is alone, so that its own clock will do.
	Clock Time
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
	Attempt
	Delivery *ClaimedDelivery
	State    DeliveryState // after the attempt
	Next     Time          // the next attempt, if State is pending
	Gone     bool          // the receiver wants no more: disable the webhook
}

// Result returns what follows from an attempt. A ping is tried once. retryAfter and
// random are those of [NextAttempt].
func (d *ClaimedDelivery) Result(a Attempt, random float64, retryAfter time.Duration) DeliveryResult {
	r := DeliveryResult{Attempt: a, Delivery: d, State: DeliveryFailed}
	r.Gone = a.Status != nil && *a.Status == 410
	ended := At(a.Time.Add(time.Duration(a.DurationMs) * time.Millisecond))
	switch {
	case a.Succeeded():
		r.State = DeliveryDelivered
	case r.Gone || d.EventID == 0:
	default:
		if next, more := NextAttempt(d.Tries+1, ended, random, retryAfter); more {
			r.State, r.Next = DeliveryPending, next
		}
	}
	return r
}
