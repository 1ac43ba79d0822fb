package db

import (
	"context"
	"errors"
	"math"
	"slices"

	"animalstore"
)

// Events stores the events that changes add: see [DB].
type Events interface {
	// Events returns events with higher ids than q.After, oldest first. If few events
	// match, it examines at most about MaxEventsExamined of them: last is the id of the
	// last event it examined, at least q.After, and the next call continues from there.
	// It returns ErrEventsExpired if q.After is not in the range of EventRange.
	//
	// With q.Before it returns events with lower ids, newest first, and last is the
	// lowest id it examined, or 0 once the oldest kept event has been reached. It
	// returns ErrEventsExpired if q.Before is beyond the newest and isn't LatestEvents.
	Events(ctx context.Context, q EventQuery) (events []animalstore.Event, last int64, err error)

	// EventRange returns the id before the oldest kept event, and the newest id:
	// exactly the range of After that Events accepts. Both are 0 in a new store.
	EventRange(ctx context.Context) (first, newest int64, err error)

	// EventsSince returns the position to read after for all events at or after a time. The
	// event after the position is at most ClockSkew older than that time, and none before it
	// is as new, as long as the clocks of instances are at most ClockSkew apart. If all
	// events are older, it is the newest id. It reads only a few events.
	EventsSince(ctx context.Context, since animalstore.Time) (position int64, err error)

	// PublishEvents makes the events of all changes that have returned readable, and
	// returns the newest id. Until then Events may not return them. If there are very
	// many, it may leave some for the next call; newest then rises with each call.
	PublishEvents(ctx context.Context) (newest int64, err error)

	// DropEvents removes at most max of the oldest events, stopping at the first that
	// isn't older than before, and returns how many it removed. It never removes the
	// newest.
	DropEvents(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)
}

// ErrEventsExpired: an event's id is older than the kept events, or beyond the newest,
// as after a restore from a backup. A follower that continued from there would miss
// events.
var ErrEventsExpired = errors.New("events expired")

// EventQuery selects the events that match all of its fields. Without Types, Subject or
// PetID, every event matches. Subject and PetID aren't combined.
type EventQuery struct {
	After   int64 // only higher ids, oldest first
	Before  int64 // if not 0, replaces After: only lower ids (or LatestEvents), newest first
	Types   []animalstore.EventType
	Subject string // such as "pet/17"
	PetID   int64  // if not 0, only events of this pet, its photos and its orders
	Limit   int    // at least 1
}

// LatestEvents is the value of Before for a list that begins with the newest event.
const LatestEvents = -1

// MaxEventsExamined is how many events an engine examines in one call if few of them
// match, so that a query for a rare type doesn't scan the whole store. With a pet, or a
// pet as the subject, it examines only the events of that pet, its photos and its orders.
// With another subject, it examines only the events of resources with that id.
const MaxEventsExamined = 1000

// Origin is where a change comes from: a key, and the request it sent. The zero Origin is
// the command line.
type Origin struct {
	KeyID     int64
	RequestID string
}

// Service is the origin of changes that the service makes itself. No key has this id.
var Service = Origin{KeyID: -1}

// originKey is the key of the context value that holds the origin, as an *Origin.
type originKey struct{}

// WithOrigin returns a context for changes of this origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, &o)
}

// OriginOf returns the origin of a context.
func OriginOf(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return *o
	}
	return Origin{}
}

// What engines share about events. They store a type as its index in
// animalstore.EventTypes, a subject as the id alone because the type names the
// resource, the pet that the subject belongs to, and an origin as its two fields.

// petResources are the resources that belong to a pet.
var petResources = []string{"pet", "photo", "order"}

// EventFilter is an [EventQuery] in the form that engines apply.
type EventFilter struct {
	Types     []int64 // the stored values; nil: all
	PetID     int64   // if not 0, only events of this pet, its photos and its orders
	HasID     bool    // only events of the resource with this id, which isn't a pet
	SubjectID int64
	None      bool // nothing can match
}

// Filter returns the filter for a query.
func (q *EventQuery) Filter() EventFilter {
	var f EventFilter
	resources := []string(nil) // any
	switch {
	case q.PetID != 0:
		f.PetID, resources = q.PetID, petResources
	case q.Subject != "":
		resource, id, ok := animalstore.ParseEventSubject(q.Subject)
		if !ok || resource == "pet" && id == 0 {
			return EventFilter{None: true}
		}
		resources = []string{resource}
		if resource == "pet" {
			f.PetID = id
		} else {
			f.HasID, f.SubjectID = true, id
		}
	case len(q.Types) == 0:
		return f
	}
	for i, t := range animalstore.EventTypes {
		if (len(q.Types) == 0 || slices.Contains(q.Types, t)) && (resources == nil || slices.Contains(resources, t.Resource())) {
			f.Types = append(f.Types, int64(i))
		}
	}
	f.None = f.Types == nil
	return f
}

// Examined returns how many events to examine for a query that wants up to limit.
func (f *EventFilter) Examined(limit int) int {
	if f.Types == nil {
		return limit
	}
	return max(limit, MaxEventsExamined)
}

// Start returns the id that a list begins after or, if it is newest first, before.
func (q *EventQuery) Start() int64 {
	switch q.Before {
	case 0:
		return q.After
	case LatestEvents:
		return math.MaxInt64
	}
	return q.Before
}

// EventPage is what an engine has read for a query.
type EventPage struct {
	First, Newest int64 // the range of events: Newest as of before the list was read, First as of afterwards
	Events        []animalstore.Event
	Last          int64 // the id of the last event that was examined
	All           bool  // there are no others to examine
}

// Result returns the results of Events.
func (q *EventQuery) Result(p *EventPage) (events []animalstore.Event, last int64, err error) {
	switch {
	case q.Before == 0 && (q.After < p.First || q.After > p.Newest), q.Before > p.Newest:
		return nil, q.After, ErrEventsExpired
	case q.Before == 0 && p.All:
		return p.Events, max(p.Last, p.Newest), nil
	case q.Before != 0 && (p.All || p.Last <= p.First+1):
		return p.Events, 0, nil
	}
	return p.Events, p.Last, nil
}

// EventTypeIndex returns the stored value of a type. It panics if t is unknown.
func EventTypeIndex(t animalstore.EventType) int64 { return StoredIndex(animalstore.EventTypes, t) }

// EventColumns are read by [ScanEvent].
const EventColumns = "id, type, subject_id, created_at, key_id, request_id, data"

// ScanEvent scans an event, and more that follows.
func ScanEvent(row Row, more ...any) (animalstore.Event, error) {
	var e animalstore.Event
	var eventType, subjectID, at int64
	by := new(Origin) // one piece of memory for both
	columns := []any{&e.ID, &eventType, &subjectID, &at, &by.KeyID, &by.RequestID, (*[]byte)(&e.Data)}
	err := row.Scan(append(columns, more...)...)
	e.Time, e.Type = animalstore.AtMilli(at), FromStored(animalstore.EventTypes, eventType)
	e.Subject = animalstore.EventSubject(e.Type.Resource(), subjectID)
	if e.Actor = by.actor(); e.Actor == animalstore.ActorKey {
		e.KeyID = &by.KeyID
	}
	if by.RequestID != "" {
		e.RequestID = &by.RequestID
	}
	return e, err
}

// actor returns whether a key, the service or the command line made a change.
func (o *Origin) actor() animalstore.Actor {
	switch {
	case o.KeyID > 0:
		return animalstore.ActorKey
	case *o == Service:
		return animalstore.ActorService
	}
	return animalstore.ActorCommandLine
}

// EventData returns a resource as JSON, exactly as a response would show it.
func EventData(resource any) string {
	if pet, ok := resource.(*animalstore.Pet); ok {
		return string(AppendPet(make([]byte, 0, 128), pet))
	}
	data, err := animalstore.EncodeJSON(resource)
	if err != nil {
		panic(err) // our types can always be encoded
	}
	return string(data)
}
