package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// insertEvent adds an event in the transaction of its change. Write transactions run
// one at a time, so ids rise in the order of commits.
func insertEvent(c *sqlite.Conn, by db.Origin, t animalstore.EventType, subjectID int64, data string) error {
	return insertPetEvent(c, by, t, subjectID, 0, data)
}

// insertPetEvent is insertEvent for a pet, or for a photo or an order of a pet.
func insertPetEvent(c *sqlite.Conn, by db.Origin, t animalstore.EventType, subjectID, petID int64, data string) error {
	return execute(c, "insert event", "INSERT INTO events (type, subject_id, pet_id, created_at, key_id, request_id, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
		db.EventTypeIndex(t), subjectID, petID, time.Now().UnixMilli(), by.KeyID, by.RequestID, data)
}

const eventColumns = "id, type, subject_id, created_at, key_id, request_id, data"

// Parameters: the bounds of ids, the limit and, if only one pet's or subject's events are
// wanted, its id.
const (
	selectEventsOf = "SELECT " + eventColumns + " FROM events WHERE "
	ofPet          = "pet_id = ?4 AND pet_id <> 0 AND " // the index has no zeros
	ofSubject      = "subject_id = ?4 AND " + db.SQLOtherSubject + " AND "
	eventsForward  = "id > ?1 AND id <= ?2 ORDER BY id LIMIT +?3"
	eventsBackward = "id > ?1 AND id < ?2 ORDER BY id DESC LIMIT +?3"
)

// eventListQuery returns the statement for a filter.
func eventListQuery(filter *db.EventFilter, backward bool) string {
	of, end := "", eventsForward
	switch {
	case filter.PetID != 0:
		of = ofPet
	case filter.HasID:
		of = ofSubject
	}
	if backward {
		end = eventsBackward
	}
	return selectEventsOf + of + end
}

// Events implements [db.DB]. Its statements don't share a snapshot, so the newest id is
// read first and the oldest last: no event that is added or dropped in between is missed.
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	filter := q.Filter()
	if q.Before != 0 {
		return d.eventsBefore(ctx, q, &filter)
	}
	err = d.read(ctx, func(c *sqlite.Conn) error {
		_, newest, err := eventRange(c)
		if err != nil {
			return err
		}
		if q.After > newest {
			return db.ErrEventsExpired
		}
		events, last = []animalstore.Event{}, newest
		if !filter.None && q.After < newest {
			var all bool
			if events, last, all, err = selectEvents(c, eventList{false, q.After, newest, q.Limit, &filter}); err != nil {
				return err
			}
			if all {
				last = newest
			}
		}
		first, _, err := eventRange(c)
		if err == nil && q.After < first {
			return db.ErrEventsExpired
		}
		return err
	})
	if err != nil {
		return nil, q.After, err
	}
	return events, last, nil
}

// eventsBefore is Events for a query with Before. It reads the oldest id first: what is
// dropped in between may be missed.
func (d *DB) eventsBefore(ctx context.Context, q db.EventQuery, filter *db.EventFilter) (events []animalstore.Event, last int64, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) error {
		first, newest, err := eventRange(c)
		if err != nil {
			return err
		}
		before := q.Before
		if before == db.LatestEvents {
			before = newest + 1
		} else if before > newest {
			return db.ErrEventsExpired
		}
		events, last = []animalstore.Event{}, 0
		if filter.None || before <= first+1 {
			return nil
		}
		all := false
		if events, last, all, err = selectEvents(c, eventList{true, first, before, q.Limit, filter}); all || last == first+1 {
			last = 0
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return events, last, nil
}

// eventList is what a list of events is limited to.
type eventList struct {
	backward     bool  // newest first
	lower, upper int64 // bounds of ids
	limit        int
	filter       *db.EventFilter
}

// selectEvents returns the matching events, the last id it examined, and whether it
// examined all of them.
func selectEvents(c *sqlite.Conn, l eventList) (events []animalstore.Event, last int64, all bool, err error) {
	events = make([]animalstore.Event, 0, min(l.limit, 128))
	examined := l.filter.Examined(l.limit)
	args := []any{l.lower, l.upper, examined}
	switch {
	case l.filter.PetID != 0:
		args = append(args, l.filter.PetID)
	case l.filter.HasID:
		args = append(args, l.filter.SubjectID)
	}
	stmt, err := prepare(c, eventListQuery(l.filter, l.backward), args)
	if err != nil {
		return nil, 0, false, fmt.Errorf("select events: %w", err)
	}
	defer stmt.Reset()
	for n := 0; n < examined && len(events) < l.limit; n++ {
		more, err := stmt.Step()
		if err != nil {
			return nil, 0, false, fmt.Errorf("select events: %w", err)
		}
		if !more {
			return events, last, true, nil
		}
		last = stmt.ColumnInt64(0)
		if l.filter.Matches(stmt.ColumnInt64(1)) {
			events = append(events, scanEvent(stmt))
		}
	}
	return events, last, false, nil
}

func scanEvent(stmt *sqlite.Stmt) animalstore.Event {
	row := db.StoredEvent{
		ID:        stmt.ColumnInt64(0),
		Type:      stmt.ColumnInt64(1),
		SubjectID: stmt.ColumnInt64(2),
		Time:      stmt.ColumnInt64(3),
		KeyID:     stmt.ColumnInt64(4),
		RequestID: stmt.ColumnText(5),
		Data:      make(json.RawMessage, stmt.ColumnLen(6)),
	}
	stmt.ColumnBytes(6, row.Data)
	return row.Event()
}

// eventRange is EventRange on a connection.
func eventRange(c *sqlite.Conn) (first, newest int64, err error) {
	err = selectEach(c, "select range of events", func(stmt *sqlite.Stmt) error {
		first, newest = stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		return nil
	}, "SELECT coalesce((SELECT min(id) FROM events), 1) - 1, coalesce((SELECT max(id) FROM events), 0)")
	return first, newest, err
}

// EventRange implements [db.DB].
func (d *DB) EventRange(ctx context.Context) (first, newest int64, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		first, newest, err = eventRange(c)
		return err
	})
	return first, newest, err
}

// PublishEvents implements [db.DB]. An event is readable as soon as its change is.
func (d *DB) PublishEvents(ctx context.Context) (newest int64, err error) {
	_, newest, err = d.EventRange(ctx)
	return newest, err
}

// DropEvents implements [db.DB]. It drops the events before the first that has to stay,
// so that the ids of the others are consecutive even if the clock was set back.
func (d *DB) DropEvents(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (dropped int, err error) {
		first, newest, err := eventRange(c)
		if err != nil {
			return 0, err
		}
		end := min(first+1+int64(max), newest) // the first event that stays
		young, err := selectInt(c, "drop events", "SELECT id FROM events WHERE id < ? AND created_at >= ? ORDER BY id LIMIT 1", end, before.Milli())
		if err != nil {
			return 0, err
		}
		err = execute(c, "drop events", "DELETE FROM events WHERE id < ?", cmp.Or(young, end))
		return c.Changes(), err
	})
}
