package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// Parameters: the id that the list begins after or before, the limit and, if only the events
// of one pet or other subject are wanted, its id.
const (
	listEvents      = "SELECT " + db.EventColumns + " FROM events WHERE id > ?1 ORDER BY id LIMIT +?2"
	listEventsOfPet = "SELECT " + db.EventColumns + ` FROM events
		WHERE pet_id = ?3 AND pet_id <> 0 AND id > ?1 ORDER BY id LIMIT +?2`
	listEventsOfSubject = "SELECT " + db.EventColumns + ` FROM events
		WHERE subject_id = ?3 AND type > 2 AND id > ?1 ORDER BY id LIMIT +?2`

	listEventsBefore      = "SELECT " + db.EventColumns + " FROM events WHERE id < ?1 ORDER BY id DESC LIMIT +?2"
	listEventsOfPetBefore = "SELECT " + db.EventColumns + ` FROM events
		WHERE pet_id = ?3 AND pet_id <> 0 AND id < ?1 ORDER BY id DESC LIMIT +?2`
	listEventsOfSubjectBefore = "SELECT " + db.EventColumns + ` FROM events
		WHERE subject_id = ?3 AND type > 2 AND id < ?1 ORDER BY id DESC LIMIT +?2`
)

// eventListQuery returns the statement for q and its arguments.
func eventListQuery(q *db.EventQuery, filter *db.EventFilter) (query string, args []any) {
	all, ofPet, ofSubject := listEvents, listEventsOfPet, listEventsOfSubject
	if q.Before != 0 {
		all, ofPet, ofSubject = listEventsBefore, listEventsOfPetBefore, listEventsOfSubjectBefore
	}
	args = []any{q.Start(), filter.Examined(q.Limit)}
	switch {
	case filter.PetID != 0:
		return ofPet, append(args, filter.PetID)
	case filter.HasID:
		return ofSubject, append(args, filter.SubjectID)
	}
	return all, args
}

// Events implements [db.DB]. Its statements don't share a snapshot, so the newest id is
// read first and the oldest last: no event that is added or dropped in between is missed.
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	filter := q.Filter()
	page := db.EventPage{All: true, Events: make([]animalstore.Event, 0, min(q.Limit, 128))}
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		if _, page.Newest, err = eventRange(c); err != nil {
			return err
		}
		if !filter.None {
			if err := selectEvents(c, &page, &q, &filter); err != nil {
				return err
			}
		}
		page.First, _, err = eventRange(c)
		return err
	})
	if err != nil {
		return nil, q.After, err
	}
	return q.Result(&page)
}

func selectEvents(c *sqlite.Conn, page *db.EventPage, q *db.EventQuery, filter *db.EventFilter) error {
	query, args := eventListQuery(q, filter)
	examined := 0
	err := selectEach(c, "select events", func(r row) error {
		examined++
		page.Last = r.ColumnInt64(0)
		if filter.Types == nil || slices.Contains(filter.Types, r.ColumnInt64(1)) {
			event, err := db.ScanEvent(r)
			if err != nil {
				return err
			}
			page.Events = append(page.Events, event)
		}
		if page.All = examined < filter.Examined(q.Limit) && len(page.Events) < q.Limit; !page.All {
			return errPageFull
		}
		return nil
	}, query, args...)
	if errors.Is(err, errPageFull) {
		return nil
	}
	return err
}

// eventRange is EventRange on a connection.
func eventRange(c *sqlite.Conn) (first, newest int64, err error) {
	err = selectEach(c, "select range of events", func(r row) error { return r.Scan(&first, &newest) },
		"SELECT coalesce((SELECT min(id) FROM events), 1) - 1, coalesce((SELECT max(id) FROM events), 0)")
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

const selectEventTime = "SELECT created_at FROM events WHERE id = ?"

// EventsSince implements [db.DB].
func (d *DB) EventsSince(ctx context.Context, since animalstore.Time) (position int64, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) error {
		first, newest, err := eventRange(c)
		if err != nil {
			return err
		}
		position, err = db.PositionSince(first, newest, since, func(id int64) (at int64, found bool, err error) {
			err = selectEach(c, "select time of event", func(r row) error {
				found = true
				return r.Scan(&at)
			}, selectEventTime, id)
			return at, found, err
		})
		return err
	})
	return position, err
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
