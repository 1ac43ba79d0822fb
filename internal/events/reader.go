package events

import (
	"context"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// Reader reads the feed starting at a position. It isn't safe for concurrent
// use.
type Reader struct {
	hub      *Hub
	view     View
	query    animalstore.EventQuery
	types    []animalstore.EventType // of the query, that the reader may see; none: all
	empty    bool                    // no event can match
	position int64
	waited   bool // for the next event, perhaps with many others
}

// NewReader returns a reader that gets the events after a position that match q. Call
// Close when it is no longer used.
func (h *Hub) NewReader(after int64, q animalstore.EventQuery, view View) *Reader {
	h.addReader()
	r := &Reader{hub: h, view: view, query: q, position: after}
	r.types, r.empty = visibleTypes(q.Types.Types(), view)
	return r
}

// visibleTypes returns the types to look for; none means all of them.
func visibleTypes(asked []animalstore.EventType, view View) (types []animalstore.EventType, empty bool) {
	wanted := asked
	if len(wanted) == 0 {
		wanted = animalstore.EventTypes
	}
	types = slices.DeleteFunc(slices.Clone(wanted), func(t animalstore.EventType) bool { return !view.Sees(t) })
	if len(types) == len(wanted) {
		return asked, false
	}
	return types, len(types) == 0
}

// Close ends the reader.
func (r *Reader) Close() { r.hub.removeReader() }

// Position is the id of the last event the reader has examined, whether it
// matched or not.
func (r *Reader) Position() int64 { return r.position }

// Read returns the next matching events, at most limit, and moves the position
// past them. It doesn't wait for events. more reports whether there may already
// be others. It doesn't use the database if the events are in memory.
func (r *Reader) Read(ctx context.Context, limit int) (messages []Message, more bool, err error) {
	if r.waited {
		r.waited = false
		time.Sleep(r.hub.wakePause())
	}
	kept, newest, ok := r.hub.keptAfter(r.position)
	if !ok {
		return r.ReadStored(ctx, limit)
	}
	var matching []*shared
	position := newest
	for _, s := range kept {
		if !r.matches(&s.Event) {
			continue
		}
		if more = len(matching) == limit; more {
			position = matching[limit-1].ID
			break
		}
		matching = append(matching, s)
	}
	if messages, err = r.hub.messages(ctx, matching, r.view); err == nil {
		r.position = position
	}
	return messages, more, err
}

// ReadStored is like Read, but always reads the database, so it also finds
// events the hub hasn't read yet.
func (r *Reader) ReadStored(ctx context.Context, limit int) (messages []Message, more bool, err error) {
	before := r.position
	if r.empty {
		newest, err := r.hub.store.PublishEvents(ctx)
		if err == nil {
			// This checks that the position still exists.
			_, _, err = r.hub.store.Events(ctx, db.EventQuery{After: r.position, Limit: 1})
		}
		if err != nil {
			return nil, false, err
		}
		r.position = max(r.position, newest)
		return nil, false, nil
	}
	events, last, err := r.hub.store.Events(ctx, db.EventQuery{After: r.position, Types: r.types,
		Subject: r.query.Subject, PetID: r.query.PetID, Limit: limit})
	if err != nil {
		return nil, false, err
	}
	if messages, err = r.messages(ctx, events); err != nil {
		return nil, false, err
	}
	r.position = max(r.position, last)
	return messages, r.position > before, nil
}

// ReadBefore returns matching events before an id, at most limit, newest first,
// and the id to continue from: 0 once the oldest kept event has been reached.
func (h *Hub) ReadBefore(ctx context.Context, before int64, q animalstore.EventQuery, view View,
	limit int) (messages []Message, last int64, err error) {
	r := &Reader{hub: h, view: view, query: q}
	if r.types, r.empty = visibleTypes(q.Types.Types(), view); r.empty {
		_, _, err := h.store.Events(ctx, db.EventQuery{Before: before, Limit: 1}) // checks that the id exists
		return nil, 0, err
	}
	events, last, err := h.store.Events(ctx, db.EventQuery{Before: before, Types: r.types, Subject: q.Subject,
		PetID: q.PetID, Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	messages, err = r.messages(ctx, events)
	return messages, last, err
}

// messages returns the messages of those events that match.
func (r *Reader) messages(ctx context.Context, events []animalstore.Event) ([]Message, error) {
	events = slices.DeleteFunc(events, func(e animalstore.Event) bool { return !r.matches(&e) })
	return r.hub.messages(ctx, newShared(nil, events), r.view)
}

// matches also checks events that the database has already filtered, so that a
// single place decides who may see which event.
func (r *Reader) matches(e *animalstore.Event) bool {
	return !r.empty && r.view.Sees(e.Type) &&
		(len(r.types) == 0 || slices.Contains(r.types, e.Type)) &&
		(r.query.Subject == "" || e.Subject == r.query.Subject) &&
		(r.query.PetID == 0 || e.PetID() == r.query.PetID)
}

// More returns a channel that is closed when there may be events after the position.
func (r *Reader) More() <-chan struct{} {
	changed := r.hub.changedAfter(r.position)
	r.waited = changed != closed
	return changed
}
