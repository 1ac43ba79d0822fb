package postgres

import (
	"context"
	"math"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const (
	eventColumns = "type, subject_id, pet_id, created_at, key_id, request_id, data"
	insertEvents = "INSERT INTO event_queue (" + eventColumns + ") "
	insertEvent  = insertEvents + "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)

// queueEvent adds an event to the batch of statements that make a change.
func queueEvent(ctx context.Context, batch *pgx.Batch, t animalstore.EventType, subjectID int64, data string) {
	queuePetEvent(ctx, batch, t, subjectID, 0, data)
}

// queuePetEvent is queueEvent for a pet, or for a photo or an order of a pet.
func queuePetEvent(ctx context.Context, batch *pgx.Batch, t animalstore.EventType, subjectID, petID int64, data string) {
	by := db.OriginOf(ctx)
	batch.Queue(insertEvent, db.EventTypeIndex(t), subjectID, petID, time.Now().UnixMilli(), by.KeyID, by.RequestID, data)
}

// send runs the statements of a batch in one round trip.
func send(ctx context.Context, tx pgx.Tx, doing string, batch *pgx.Batch) error {
	return failed(doing, tx.SendBatch(ctx, batch).Close())
}

// publishBatch is how many events one transaction publishes.
const publishBatch = 1000

const eventsWaiting = "SELECT EXISTS (SELECT FROM event_queue), coalesce((SELECT max(id) FROM events), 0)"

// publishEvents numbers a batch of committed events, in the order of the queue. Changes
// of one resource wait for each other before they are queued, so they are in order there.
const publishEvents = `WITH taken AS (
		DELETE FROM event_queue WHERE seq = ANY (ARRAY(SELECT seq FROM event_queue ORDER BY seq LIMIT $1))
		RETURNING seq, ` + eventColumns + `),
	numbered AS (INSERT INTO events (id, ` + eventColumns + `)
		SELECT (SELECT coalesce(max(id), 0) FROM events) + row_number() OVER (ORDER BY seq), ` + eventColumns + ` FROM taken
		RETURNING id)
	SELECT coalesce(max(id), (SELECT coalesce(max(id), 0) FROM events)) FROM numbered`

// PublishEvents implements [db.DB].
func (d *DB) PublishEvents(ctx context.Context) (newest int64, err error) {
	waiting := false
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return failed("look for events", c.QueryRow(ctx, eventsWaiting).Scan(&waiting, &newest))
	})
	if err != nil || !waiting {
		return newest, err
	}
	err = d.writeStatement(ctx, "publish events", func(ctx context.Context, c *pgx.Conn) (err error) {
		newest, err = publishOn(ctx, c)
		return err
	})
	return newest, err
}

// publishOn publishes one batch. Outside of an explicit transaction, the two statements
// are one implicit transaction and take one round trip. The second sees what others
// published before it got the lock, because its snapshot is taken afterwards.
func publishOn(ctx context.Context, c *pgx.Conn) (newest int64, err error) {
	var batch pgx.Batch
	batch.Queue("SELECT pg_advisory_xact_lock($1)", int64(publishLock))
	batch.Queue(publishEvents, publishBatch)
	results := c.SendBatch(ctx, &batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return 0, err
	}
	if err := results.QueryRow().Scan(&newest); err != nil {
		return 0, err
	}
	return newest, results.Close() // the commit
}

// publishQueued publishes the events that are queued when it is called. It ends even if
// others keep adding events. Afterwards, every change that was made before the call has a
// lower event id than any later one.
func (d *DB) publishQueued(ctx context.Context) error {
	for last := int64(0); ; {
		var first, newest int64
		err := d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
			return failed("look for events", c.QueryRow(ctx, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM event_queue").Scan(&first, &newest))
		})
		if last == 0 {
			last = newest
		}
		if err != nil || first == 0 || first > last {
			return err
		}
		if _, err := d.PublishEvents(ctx); err != nil {
			return err
		}
	}
}

// publishAll publishes everything that is queued.
func publishAll(ctx context.Context, c *pgx.Conn) error {
	for {
		waiting, newest := false, int64(0)
		if err := c.QueryRow(ctx, eventsWaiting).Scan(&waiting, &newest); err != nil || !waiting {
			return failed("look for events", err)
		}
		if _, err := publishOn(ctx, c); err != nil {
			return failed("publish events", err)
		}
	}
}

const (
	eventRange = "SELECT coalesce((SELECT min(id) FROM events), 1) - 1 AS first, coalesce((SELECT max(id) FROM events), 0) AS newest"
	eventList  = "SELECT id, " + eventColumns + " FROM events"

	// Parameters: $1 is the lower bound of ids, $2 the limit, $3 how many events to
	// examine, $4 the types, $5 the id of the pet or subject. One statement sees one state, in which
	// the range and the rows belong together.
	listEvents = "SELECT first, newest, 0::bigint, 0::bigint, id, " + eventColumns + " FROM (" + eventRange + ") AS range LEFT JOIN LATERAL (" +
		eventList + " WHERE id > $1 ORDER BY id LIMIT $2) AS event ON true"
	listEventsByType = "WITH examined AS MATERIALIZED (" + eventList + " WHERE id > $1 ORDER BY id LIMIT $3)" + fromExamined
	// These order by both columns of their index, like the lists of pets.
	listEventsByPet = "WITH examined AS MATERIALIZED (" + eventList +
		" WHERE (pet_id, id) > ($5, $1) AND pet_id <= $5 AND pet_id <> 0 ORDER BY pet_id, id LIMIT $3)" + fromExamined
	listEventsBySubject = "WITH examined AS MATERIALIZED (" + eventList +
		" WHERE (subject_id, id) > ($5, $1) AND subject_id <= $5 AND " + db.SQLOtherSubject + " ORDER BY subject_id, id LIMIT $3)" + fromExamined

	eventsBefore = "SELECT first, newest, 0::bigint, 0::bigint, id, " + eventColumns + " FROM (" + eventRange + ") AS range LEFT JOIN LATERAL (" +
		eventList + " WHERE id < $1 ORDER BY id DESC LIMIT $2) AS event ON true"
	typeEventsBefore = "WITH examined AS MATERIALIZED (" + eventList + " WHERE id < $1 ORDER BY id DESC LIMIT $3)" + fromExaminedBefore
	petEventsBefore  = "WITH examined AS MATERIALIZED (" + eventList +
		" WHERE (pet_id, id) < ($5, $1) AND pet_id >= $5 AND pet_id <> 0 ORDER BY pet_id DESC, id DESC LIMIT $3)" + fromExaminedBefore
	subjectEventsBefore = "WITH examined AS MATERIALIZED (" + eventList +
		" WHERE (subject_id, id) < ($5, $1) AND subject_id >= $5 AND " + db.SQLOtherSubject + " ORDER BY subject_id DESC, id DESC LIMIT $3)" + fromExaminedBefore

	fromExamined = " SELECT first, newest, (SELECT count(*) FROM examined), coalesce((SELECT max(id) FROM examined), 0), id, " + eventColumns +
		" FROM (" + eventRange + ") AS range LEFT JOIN LATERAL (SELECT * FROM examined WHERE type = ANY ($4) ORDER BY id LIMIT $2) AS event ON true"
	fromExaminedBefore = " SELECT first, newest, (SELECT count(*) FROM examined), coalesce((SELECT min(id) FROM examined), 0), id, " + eventColumns +
		" FROM (" + eventRange + ") AS range LEFT JOIN LATERAL (SELECT * FROM examined WHERE type = ANY ($4) ORDER BY id DESC LIMIT $2) AS event ON true"
)

func eventListQuery(q db.EventQuery, filter *db.EventFilter) (query string, args []any) {
	all, byType, byPet, bySubject := listEvents, listEventsByType, listEventsByPet, listEventsBySubject
	args = []any{q.After, q.Limit}
	if q.Before != 0 {
		all, byType, byPet, bySubject = eventsBefore, typeEventsBefore, petEventsBefore, subjectEventsBefore
		args[0] = q.Before
		if q.Before == db.LatestEvents {
			args[0] = math.MaxInt64
		}
	}
	if filter.Types == nil && !filter.None {
		return all, args
	}
	args = append(args, filter.Examined(q.Limit), append([]int64{}, filter.Types...)) // not nil: an empty list matches nothing
	switch {
	case filter.PetID != 0:
		return byPet, append(args, filter.PetID)
	case filter.HasID:
		return bySubject, append(args, filter.SubjectID)
	}
	return byType, args
}

// Events implements [db.DB].
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	filter := q.Filter()
	query, args := eventListQuery(q, &filter)
	var scan eventScan
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		events = make([]animalstore.Event, 0, min(q.Limit, 128))
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return failed("select events", err)
		}
		defer rows.Close()
		for rows.Next() {
			event, err := scanEvent(rows, &scan)
			if err != nil {
				return failed("select events", err)
			}
			if event.ID != 0 {
				events = append(events, event)
			}
		}
		return failed("select events", rows.Err())
	})
	if err != nil {
		return nil, q.After, err
	}
	end := scan.newest
	if q.Before != 0 {
		end = 0
	}
	switch {
	case q.Before == 0 && (q.After < scan.first || q.After > scan.newest), q.Before > scan.newest:
		return nil, q.After, db.ErrEventsExpired
	case len(events) == q.Limit:
		last = events[len(events)-1].ID
	case !filter.None && scan.examined > 0 && scan.examined == int64(filter.Examined(q.Limit)):
		last = scan.last
	default:
		last = end
	}
	if q.Before != 0 && last == scan.first+1 {
		last = 0
	}
	return events, last, nil
}

// eventScan is what all rows of a list of events have in common.
type eventScan struct {
	first, newest  int64 // the range of all events
	examined, last int64 // how many events were examined, and the last id; 0 without a filter
}

// scanEvent reads a row of listEvents. The columns of the event are NULL if there is
// none.
func scanEvent(rows pgx.Rows, scan *eventScan) (animalstore.Event, error) {
	var id, eventType, subjectID, petID, at, keyID *int64
	var requestID *string
	var data []byte
	err := rows.Scan(&scan.first, &scan.newest, &scan.examined, &scan.last, &id, &eventType, &subjectID, &petID, &at, &keyID, &requestID, &data)
	if err != nil || id == nil {
		return animalstore.Event{}, err
	}
	row := db.StoredEvent{ID: *id, Type: *eventType, SubjectID: *subjectID, Time: *at, KeyID: *keyID, RequestID: *requestID, Data: data}
	return row.Event(), nil
}

// EventRange implements [db.DB].
func (d *DB) EventRange(ctx context.Context) (first, newest int64, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return failed("select range of events", c.QueryRow(ctx, eventRange).Scan(&first, &newest))
	})
	return first, newest, err
}

// dropEvents deletes the events before the first that has to stay, so that the ids of the
// others are consecutive even if clocks differ.
const dropEvents = `WITH most AS (SELECT least((SELECT min(id) FROM events) + $2, (SELECT max(id) FROM events)) AS id)
	DELETE FROM events WHERE id < coalesce(
		(SELECT events.id FROM events WHERE events.id < (SELECT id FROM most) AND created_at >= $1 ORDER BY events.id LIMIT 1),
		(SELECT id FROM most))`

// DropEvents implements [db.DB].
func (d *DB) DropEvents(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop events", dropEvents, before, max)
}
