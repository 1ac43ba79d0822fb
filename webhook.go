package animalstore

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WebhookState says whether events are sent to a webhook.
type WebhookState string

const (
	WebhookActive   WebhookState = "active"
	WebhookPaused   WebhookState = "paused"   // by an administrator
	WebhookDisabled WebhookState = "disabled" // by the service
)

// WebhookStates are all states.
var WebhookStates = []WebhookState{WebhookActive, WebhookPaused, WebhookDisabled}

const (
	// MaxWebhooks is how many webhooks a store can have.
	MaxWebhooks = 50
	// MaxWebhookURLLength and MaxDescriptionLength are in code points.
	MaxWebhookURLLength  = 2048
	MaxDescriptionLength = 500
)

// DefaultEventPatterns are the events that a webhook gets unless it names others.
const DefaultEventPatterns EventPatterns = "pet.*,order.*,category.*"

// EventPatterns selects events: a comma-separated list of types, and of patterns such
// as "pet.*" for all types of a resource, including future ones. In JSON it is an array.
type EventPatterns string

// NewEventPatterns checks a list of patterns and returns it without duplicates.
func NewEventPatterns(patterns []string) (EventPatterns, error) {
	if len(patterns) == 0 {
		return "", Errorf(ValidationFailed, "types must name at least one type of event: omit it for %s", strings.ReplaceAll(string(DefaultEventPatterns), ",", ", "))
	}
	var list []string
	for _, pattern := range patterns {
		if !isEventPattern(pattern) {
			return "", Errorf(ValidationFailed, "types must be types of events such as pet.created, or pet.* for all of a resource")
		}
		if !slices.Contains(list, pattern) {
			list = append(list, pattern)
		}
	}
	return EventPatterns(strings.Join(list, ",")), nil
}

// List returns the patterns.
func (p EventPatterns) List() []string {
	if p == "" {
		return []string{}
	}
	return strings.Split(string(p), ",")
}

// Types returns the types that match, in the order of [EventTypes].
func (p EventPatterns) Types() (types []EventType) {
	patterns := p.List()
	for _, t := range EventTypes {
		if slices.ContainsFunc(patterns, t.matches) {
			types = append(types, t)
		}
	}
	return types
}

// MarshalJSON writes an array.
func (p EventPatterns) MarshalJSON() ([]byte, error) { return json.Marshal(p.List()) }

// UnmarshalJSON reads an array, without checking the patterns.
func (p *EventPatterns) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*p = EventPatterns(strings.Join(list, ","))
	return nil
}

// NewWebhook is a webhook to create. Its secret isn't part of it.
type NewWebhook struct {
	URL         string        `json:"url"`
	Types       EventPatterns `json:"types,omitempty"` // empty: DefaultEventPatterns
	Description string        `json:"description,omitempty"`
}

// Validate checks the text, and sets the default of Types. Package internal/webhook
// checks where the URL leads.
func (w *NewWebhook) Validate() error {
	if w.Types == "" {
		w.Types = DefaultEventPatterns
	}
	if err := ValidateWebhookURL(w.URL); err != nil {
		return err
	}
	if _, err := NewEventPatterns(w.Types.List()); err != nil {
		return err
	}
	return validateDescription(w.Description)
}

func validateDescription(text string) error {
	switch {
	case !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0:
		return Errorf(ValidationFailed, "description must be plain text, without control characters")
	case utf8.RuneCountInString(text) > MaxDescriptionLength:
		return Errorf(ValidationFailed, "description must have at most %d characters", MaxDescriptionLength)
	}
	return nil
}

// Webhook is where events are sent to.
type Webhook struct {
	ID             int64         `json:"id"`
	URL            string        `json:"url"`
	Types          EventPatterns `json:"types"`
	Description    string        `json:"description"`
	State          WebhookState  `json:"state"`
	DisabledReason OptionalText  `json:"disabledReason"` // empty unless disabled
	CreatedAt      Time          `json:"createdAt"`
	// These two are accurate to about a second. Events and entity tags of a webhook
	// leave them out.
	LastDeliveredAt Time `json:"lastDeliveredAt"`
	LastFailedAt    Time `json:"lastFailedAt"`
}

// Settings returns w without the fields that change with every delivery.
func (w Webhook) Settings() Webhook {
	w.LastDeliveredAt, w.LastFailedAt = Time{}, Time{}
	return w
}

// Disable stops deliveries because of what the receiver did. It does nothing unless the
// webhook is active.
func (w *Webhook) Disable(why OptionalText) {
	if w.State == WebhookActive {
		w.State, w.DisabledReason = WebhookDisabled, why
	}
}

// WebhookPatch is a change of a webhook. A nil field stays as it is.
type WebhookPatch struct {
	URL         *string        `json:"url,omitempty"`
	Types       *EventPatterns `json:"types,omitempty"`
	Description *string        `json:"description,omitempty"`
	State       *WebhookState  `json:"state,omitempty"` // active or paused
}

// Validate checks what doesn't depend on the webhook.
func (patch WebhookPatch) Validate() error {
	if patch.URL != nil {
		if err := ValidateWebhookURL(*patch.URL); err != nil {
			return err
		}
	}
	if patch.Types != nil {
		if _, err := NewEventPatterns(patch.Types.List()); err != nil {
			return err
		}
	}
	if patch.Description != nil {
		if err := validateDescription(*patch.Description); err != nil {
			return err
		}
	}
	if patch.State != nil && *patch.State != WebhookActive && *patch.State != WebhookPaused {
		return Errorf(ValidationFailed, "state must be active or paused")
	}
	return nil
}

// Apply changes w, if the patch is valid. After an error w is unchanged.
func (patch WebhookPatch) Apply(w *Webhook) error {
	if err := patch.Validate(); err != nil {
		return err
	}
	if patch.URL != nil {
		w.URL = *patch.URL
	}
	if patch.Types != nil {
		w.Types = *patch.Types
	}
	if patch.Description != nil {
		w.Description = *patch.Description
	}
	if patch.State != nil {
		w.State, w.DisabledReason = *patch.State, ""
	}
	return nil
}

// ValidateWebhookURL checks a URL as far as its text tells. It accepts http, which is
// only for networks that the operator named.
func ValidateWebhookURL(text string) error {
	invalid := func(format string, args ...any) error {
		return Errorf(ValidationFailed, "url "+format, args...)
	}
	switch {
	case text == "":
		return invalid("is required: send the https address that events are sent to")
	case utf8.RuneCountInString(text) > MaxWebhookURLLength:
		return invalid("must have at most %d characters", MaxWebhookURLLength)
	case strings.Contains(text, "#"):
		return invalid("must not have a fragment: it is never sent")
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) {
		return invalid("must be a URL in ASCII, such as https://example.com/hook: write other characters percent-encoded, and other host names as xn--…")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "":
		return invalid("must begin with https://")
	case u.User != nil:
		return invalid("must not contain a user name or password: webhooks are signed instead")
	case u.Hostname() == "":
		return invalid("must name a host, such as https://example.com/hook")
	case !validPort(u):
		return invalid("must have a port from 1 to 65535, or none")
	}
	return validateHost(u)
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port != 0 && u.Port()[0] != '0'
}

// validateHost refuses what some programs read as another address than others: a
// number such as 2130706433 or 0x7f.1, and an address with a zone.
func validateHost(u *url.URL) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return Errorf(ValidationFailed, "url must have a plain IPv6 address in brackets, without a zone")
		}
		return nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return !isHostRune(r) }) {
		return Errorf(ValidationFailed, "url must name a host in letters, digits, hyphens and dots")
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if isNumeric(labels[len(labels)-1]) {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
			return Errorf(ValidationFailed, "url must have a host name or an IPv4 address of four decimal numbers")
		}
		return nil
	}
	if len(host) > 253 {
		return Errorf(ValidationFailed, "url must have a host name of at most 253 characters")
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return Errorf(ValidationFailed, "url must have a host name whose parts have 1 to 63 characters")
		}
	}
	return nil
}

func isHostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
}

// isNumeric reports whether the last label of a host makes browsers and C libraries
// read the host as a number: decimal, octal or hexadecimal.
func isNumeric(label string) bool {
	if label == "" {
		return false
	}
	if digits := strings.ToLower(label); strings.HasPrefix(digits, "0x") {
		return strings.Trim(digits[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

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
// administrator test a webhook. A ping can also have the type of an event, with sample data.
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

// DeliveryQuery selects the deliveries of a webhook. The zero value selects all.
type DeliveryQuery struct {
	State DeliveryState
}

// Values returns the parameters of the list.
func (q DeliveryQuery) Values() url.Values {
	values := url.Values{}
	set(values, "state", q.State)
	return values
}

// ParseDeliveryQuery is the inverse of [DeliveryQuery.Values].
func ParseDeliveryQuery(values url.Values) (DeliveryQuery, error) {
	p := NewParameters(values)
	q := DeliveryQuery{State: oneOf(p, "state", DeliveryStates...)}
	return q, p.Err()
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
