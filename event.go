package animalstore

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// EventType says what happened to which kind of resource, such as "pet.created".
type EventType string

const (
	PetCreated           EventType = "pet.created"
	PetUpdated           EventType = "pet.updated"
	PetDeleted           EventType = "pet.deleted"
	PhotoCreated         EventType = "photo.created"
	PhotoDeleted         EventType = "photo.deleted"
	OrderCreated         EventType = "order.created"
	OrderUpdated         EventType = "order.updated"
	CategoryUpdated      EventType = "category.updated" // created or renamed
	KeyCreated           EventType = "key.created"
	KeyUpdated           EventType = "key.updated"
	KeyRotated           EventType = "key.rotated"
	KeyRevoked           EventType = "key.revoked"
	KeyBannedEvent       EventType = "key.banned" // KeyBanned is an error code
	KeyUnbanned          EventType = "key.unbanned"
	WebhookCreated       EventType = "webhook.created"
	WebhookUpdated       EventType = "webhook.updated"
	WebhookDeleted       EventType = "webhook.deleted"
	WebhookDisabledEvent EventType = "webhook.disabled" // WebhookDisabled is a state
)

// EventTypes are all types. Databases store a type as its index, so a new one goes
// at the end.
var EventTypes = []EventType{
	PetCreated, PetUpdated, PetDeleted,
	OrderCreated, OrderUpdated,
	CategoryUpdated,
	KeyCreated, KeyUpdated, KeyRotated, KeyRevoked, KeyBannedEvent, KeyUnbanned,
	WebhookCreated, WebhookUpdated, WebhookDeleted, WebhookDisabledEvent,
	PhotoCreated, PhotoDeleted,
}

// Resource is the kind of resource that events of this type are about, such as
// "pet".
func (t EventType) Resource() string {
	resource, _, _ := strings.Cut(string(t), ".")
	return resource
}

// Permission is what a key needs to see events of this type: to read their resource.
func (t EventType) Permission() Permissions {
	switch t.Resource() {
	case "key", "webhook":
		return Admin
	case "order":
		return OrdersRead
	}
	return PetsRead
}

// matches reports whether a pattern is the type, or stands for all types of its resource.
func (t EventType) matches(pattern string) bool {
	return pattern == string(t) || pattern == t.Resource()+".*"
}

func isEventPattern(pattern string) bool {
	return slices.ContainsFunc(EventTypes, func(t EventType) bool { return t.matches(pattern) })
}

// Actor is who made a change.
type Actor string

const (
	ActorKey         Actor = "key"          // a request with an API key
	ActorCommandLine Actor = "command_line" // a command that changed the store itself
	ActorService     Actor = "service"      // the service itself, such as a ban
)

// Event is a change of one resource.
type Event struct {
	ID        int64           `json:"id"`
	Type      EventType       `json:"type"`
	Time      Time            `json:"time"`      // of the change
	Subject   string          `json:"subject"`   // the resource, such as "pet/17"
	Actor     Actor           `json:"actor"`     // who made the change
	KeyID     *int64          `json:"keyId"`     // of the request that made the change; nil if no request did, or the reader may not see it
	KeyName   *string         `json:"keyName"`   // the current name of that key, at most 10 s old; nil like KeyID
	RequestID *string         `json:"requestId"` // nil like KeyID, but fewer readers may see it
	Data      json.RawMessage `json:"data"`      // the resource right after the change; if it was deleted, right before
}

// EventQuery selects events. The zero value selects all events that are kept, the oldest
// first.
type EventQuery struct {
	Types   EventPatterns // such as "pet.created", or "pet.*" for all of a resource
	Subject string        // a resource, such as "pet/17"
	PetID   int64         // a pet with its photos and orders; not with Subject

	// At most one of these says where to begin.
	After  *int64 // only events after this id: new(int64(17))
	Latest bool   // only events from now on
	Before int64  // only events before this id, newest first
	Newest bool   // all events, newest first

	// Since begins at most a minute before the first event at or after this time. With
	// Before or Newest the list ends there instead. Not with After or Latest.
	Since Time
}

// latest is the position of the newest event.
const latest = "latest"

// Values returns the parameters of the list.
func (q EventQuery) Values() url.Values {
	values := url.Values{}
	set(values, "type", q.Types)
	set(values, "subject", q.Subject)
	setID(values, "petId", q.PetID)
	setInteger(values, "after", q.After)
	setID(values, "before", q.Before)
	if q.Latest {
		values.Set("after", latest)
	}
	if q.Newest {
		values.Set("before", latest)
	}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.String())
	}
	return values
}

// ParseEventQuery is the inverse of [EventQuery.Values].
func ParseEventQuery(values url.Values) (EventQuery, error) {
	p := NewParameters(values)
	q := EventQuery{Types: p.eventPatterns("type"), PetID: p.id("petId")}
	var given bool
	if q.Subject, given = p.Text("subject"); given {
		if _, _, ok := ParseEventSubject(q.Subject); !ok {
			p.Fail("subject", "must be a resource and its id, such as pet/17")
		}
	}
	if q.Subject != "" && q.PetID != 0 {
		p.Fail("petId", "can't be combined with subject: omit one of them")
	}
	q.After, q.Latest = p.position("after", 0)
	before, newest := p.position("before", 1)
	if before != nil {
		q.Before = *before
	}
	q.Newest = newest
	if q.Backwards() && (q.After != nil || q.Latest) {
		p.Fail("before", "can't be combined with after: it leads back to older events")
	}
	q.Since = p.time("since")
	if !q.Since.IsZero() && (q.After != nil || q.Latest) {
		p.Fail("since", "can't be combined with after: omit one of them")
	}
	return q, p.Err()
}

// Backwards reports whether the newest event comes first.
func (q EventQuery) Backwards() bool { return q.Before != 0 || q.Newest }

// position returns the id of an event, at least a lowest one, or whether the newest is meant.
func (p *Parameters) position(name string, lowest int64) (id *int64, isLatest bool) {
	text, given := p.Text(name)
	if !given || text == latest {
		return nil, given
	}
	n, ok := ParseInteger(text)
	if !ok || n < lowest {
		p.Fail(name, "must be the id of an event, or "+latest)
	}
	return &n, false
}

// eventPatterns returns patterns of types. Like ids, they can be given as several parameters.
func (p *Parameters) eventPatterns(name string) EventPatterns {
	patterns, given := p.values[name]
	list := strings.Join(patterns, ",")
	if !given {
		return ""
	}
	for pattern := range strings.SplitSeq(list, ",") {
		if !isEventPattern(pattern) {
			p.Fail(name, "must be a comma-separated list of event types such as pet.created, or pet.* for all of a resource")
		}
	}
	return EventPatterns(list)
}

// PetID returns the id of the pet that the event is about: the pet itself, or the pet of the
// photo or order. It returns 0 if there is none.
func (e *Event) PetID() int64 {
	switch e.Type.Resource() {
	case "pet":
		_, id, _ := ParseEventSubject(e.Subject)
		return id
	case "photo", "order":
		var of struct {
			PetID int64 `json:"petId"`
		}
		if json.Unmarshal(e.Data, &of) == nil {
			return of.PetID
		}
	}
	return 0
}

// DecodeData returns the data as the resource it describes: a [Pet], [Photo], [Order],
// [Category], [Key] or [Webhook], by the type. It returns nil for a type that this version
// doesn't know, because a newer service may have more.
func (e Event) DecodeData() (any, error) { return e.Type.decode(e.Data) }

func (t EventType) decode(data json.RawMessage) (any, error) {
	switch t.Resource() {
	case "pet":
		return decodeAs[Pet](data)
	case "photo":
		return decodeAs[Photo](data)
	case "order":
		return decodeAs[Order](data)
	case "category":
		return decodeAs[Category](data)
	case "key":
		return decodeAs[Key](data)
	case "webhook":
		if t != WebhookPing {
			return decodeAs[Webhook](data)
		}
	}
	return nil, nil
}

func decodeAs[T any](data json.RawMessage) (any, error) {
	var resource T
	if err := json.Unmarshal(data, &resource); err != nil {
		return nil, err
	}
	return resource, nil
}

// EventSubject is the subject of the events of a resource.
func EventSubject(resource string, id int64) string {
	return resource + "/" + strconv.FormatInt(id, 10)
}

// ParseEventSubject is the inverse of [EventSubject].
func ParseEventSubject(subject string) (resource string, id int64, ok bool) {
	resource, digits, _ := strings.Cut(subject, "/")
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || EventSubject(resource, id) != subject {
		return "", 0, false
	}
	return resource, id, slices.ContainsFunc(EventTypes, func(t EventType) bool { return t.Resource() == resource })
}
