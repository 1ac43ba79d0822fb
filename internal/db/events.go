package db

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"animalstore"
)

// ErrEventsExpired: an event's id is older than the events that are kept, or beyond
// the newest, as in a store that was restored from a backup. Whoever followed from
// there has missed something.
var ErrEventsExpired = errors.New("events expired")

// EventQuery selects the events that match all of its fields. Without Types or
// Subject, every event matches.
type EventQuery struct {
	After   int64 // only higher ids
	Types   []animalstore.EventType
	Subject string // such as "pet/17"
	Limit   int    // at least 1
}

// EventsLookedAt is how many events an engine looks at in one call, if few of them
// match: a rare type must not cost a scan of the whole store. Of a query with a subject it
// looks only at the events of resources with that id.
const EventsLookedAt = 1000

// Actor is who makes a change: a key, and the request it sent. The zero Actor is the
// command line, or the service itself.
type Actor struct {
	KeyID     int64
	RequestID string
}

// ActorKey is the key of the context value that holds the actor, as an *Actor.
type ActorKey struct{}

// WithActor returns a context for the changes of this actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, ActorKey{}, &a)
}

// ActorOf returns the actor of a context.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(ActorKey{}).(*Actor); ok {
		return *a
	}
	return Actor{}
}

// What engines share about events. They store a type as its index in
// animalstore.EventTypes, a subject as the id alone because the type names the
// resource, and no key and no request as zero values.

// EventFilter is an [EventQuery] as engines apply it.
type EventFilter struct {
	Types     []int64 // the stored values; nil: all
	HasID     bool    // only events of the resource with this id
	SubjectID int64
	None      bool // nothing can match
}

// Filter returns the filter for a query.
func (q *EventQuery) Filter() EventFilter {
	var f EventFilter
	resource := ""
	if q.Subject != "" {
		var ok bool
		if resource, f.SubjectID, ok = animalstore.ParseEventSubject(q.Subject); !ok {
			return EventFilter{None: true}
		}
		f.HasID = true
	}
	if resource == "" && len(q.Types) == 0 {
		return f
	}
	for i, t := range animalstore.EventTypes {
		if (len(q.Types) == 0 || slices.Contains(q.Types, t)) && (resource == "" || t.Resource() == resource) {
			f.Types = append(f.Types, int64(i))
		}
	}
	f.None = f.Types == nil
	return f
}

// Look returns how many events to look at for a query that wants up to limit.
func (f *EventFilter) Look(limit int) int {
	if f.Types == nil {
		return limit
	}
	return max(limit, EventsLookedAt)
}

// Matches reports whether an event with this stored type and subject passes.
func (f *EventFilter) Matches(eventType, subjectID int64) bool {
	return f.Types == nil || slices.Contains(f.Types, eventType) && (!f.HasID || f.SubjectID == subjectID)
}

// EventTypeIndex returns the stored value of a type. It panics if t is unknown.
func EventTypeIndex(t animalstore.EventType) int64 {
	i := slices.Index(animalstore.EventTypes, t)
	if i < 0 {
		panic("unknown event type " + string(t))
	}
	return int64(i)
}

// StoredEvent is an event as its row has it.
type StoredEvent struct {
	ID, Type, SubjectID, Time, KeyID int64
	RequestID                        string
	Data                             json.RawMessage
}

// Event returns the event of a row.
func (s *StoredEvent) Event() animalstore.Event {
	e := animalstore.Event{ID: s.ID, Time: animalstore.AtMilli(s.Time), Data: s.Data}
	if s.Type >= 0 && s.Type < int64(len(animalstore.EventTypes)) {
		e.Type = animalstore.EventTypes[s.Type]
	}
	e.Subject = animalstore.EventSubject(e.Type.Resource(), s.SubjectID)
	by := &Actor{s.KeyID, s.RequestID} // one piece of memory for both
	if by.KeyID != 0 {
		e.KeyID = &by.KeyID
	}
	if by.RequestID != "" {
		e.RequestID = &by.RequestID
	}
	return e
}

// EventData returns a resource as the body of a response that returns it, without the
// line end.
func EventData(resource any) string {
	if pet, ok := resource.(*animalstore.Pet); ok {
		return string(pet.AppendJSON(make([]byte, 0, 128)))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(resource); err != nil {
		panic(err) // our types can always be encoded
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// KeyEventData returns a key as a response shows it at a time.
func KeyEventData(key animalstore.Key, at animalstore.Time) string {
	return EventData(key.At(at.Time))
}

// KeyChange returns the type of the event that a change of a key at a time makes, if
// any. When it was last used doesn't count, and a ban that was over isn't lifted.
func KeyChange(before, after animalstore.Key, at animalstore.Time) (t animalstore.EventType, changed bool) {
	before, after = before.At(at.Time), after.At(at.Time)
	before.LastUsedAt, after.LastUsedAt = animalstore.Time{}, animalstore.Time{}
	before.UnbannedAt, after.UnbannedAt = animalstore.Time{}, animalstore.Time{}
	switch {
	case before == after:
		return "", false
	case before.RevokedAt != after.RevokedAt:
		return animalstore.KeyRevoked, true
	case before.Ban != after.Ban:
		return animalstore.KeyUnbanned, true
	}
	return animalstore.KeyUpdated, true
}
