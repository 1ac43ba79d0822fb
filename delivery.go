package animalstore

import (
	"encoding/json"
	"slices"
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

// WebhookMessage is the body that a webhook receives.
type WebhookMessage struct {
	Type      EventType       `json:"type"`      // of the event, or WebhookPing
	Timestamp Time            `json:"timestamp"` // when the change was made
	Data      json.RawMessage `json:"data"`      // the resource, as in the event
}

// DecodeData is like [Event.DecodeData]. It returns nil for a [WebhookPing].
func (m WebhookMessage) DecodeData() (any, error) { return m.Type.decode(m.Data) }

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
	Time       Time         `json:"time"`
	Status     *int         `json:"status"` // of the response; nil: there was none
	Error      OptionalText `json:"error"`  // why there was none
	DurationMs int64        `json:"durationMs"`
}

// Succeeded reports whether the receiver accepted the event.
func (a Attempt) Succeeded() bool { return a.Status != nil && *a.Status/100 == 2 }

// MaxAttemptsShown is how many attempts of a delivery are kept. More can only come from
// retries by hand.
const MaxAttemptsShown = 20
