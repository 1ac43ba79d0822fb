package animalstore

import (
	"encoding/json"
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

// AdminOnly reports whether only keys with the permission admin may see events of
// this type.
func (t EventType) AdminOnly() bool {
	resource := t.Resource()
	return resource == "key" || resource == "webhook"
}

// matches reports whether a pattern is the type, or stands for all types of its resource.
func (t EventType) matches(pattern string) bool {
	return pattern == string(t) || pattern == t.Resource()+".*"
}

func isEventPattern(pattern string) bool {
	return slices.ContainsFunc(EventTypes, func(t EventType) bool { return t.matches(pattern) })
}

// ParseEventTypes reads a comma-separated list of types, in which "pet.*" stands for
// all types of a resource. The result is in the order of [EventTypes], without
// duplicates.
func ParseEventTypes(list string) ([]EventType, error) {
	for pattern := range strings.SplitSeq(list, ",") {
		if !isEventPattern(pattern) {
			return nil, Errorf(InvalidParameter, "type must be a comma-separated list of event types such as pet.created, or pet.* for all of a resource, not %q", pattern)
		}
	}
	return EventPatterns(list).Types(), nil
}

// Actor is who made a change.
type Actor string

const (
	ActorKey         Actor = "key"          // a request with an API key
	ActorCommandLine Actor = "command_line" // a command that changed the store itself
	ActorService     Actor = "service"      // the service on its own, such as a ban
)

// Event is a change of one resource.
type Event struct {
	ID        int64           `json:"id"`
	Type      EventType       `json:"type"`
	Time      Time            `json:"time"`      // of the change
	Subject   string          `json:"subject"`   // the resource, such as "pet/17"
	Actor     Actor           `json:"actor"`     // who made the change
	KeyID     *int64          `json:"keyId"`     // of the request that made the change; nil if no request did, or the reader may not see it
	RequestID *string         `json:"requestId"` // nil like KeyID
	Data      json.RawMessage `json:"data"`      // the resource right after the change; if it was deleted, right before
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
