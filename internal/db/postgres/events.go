package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const (
	eventFields  = "type, subject_id, pet_id, created_at, key_id, request_id, data"
	insertEvents = "INSERT INTO event_queue (" + eventFields + ") "
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
		RETURNING seq, ` + eventFields + `),
	numbered AS (INSERT INTO events (id, ` + eventFields + `)
		SELECT (SELECT coalesce(max(id), 0) FROM events) + row_number() OVER (ORDER BY seq), ` + eventFields + ` FROM taken
		RETURNING id)
	SELECT count(*), coalesce(max(id), (SELECT coalesce(max(id), 0) FROM events)) FROM numbered`

// PublishEvents implements [db.DB].
func (d *DB) PublishEvents(ctx context.Context) (newest int64, err error) {
	waiting, numbered := false, 0
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if err := c.QueryRow(ctx, eventsWaiting).Scan(&waiting, &newest); err != nil || waiting {
			return failed("look for events", err)
		}
		return d.confirm(ctx, c, newest)
	})
	if err != nil || !waiting {
		return newest, unconfirmed(err)
	}
	err = d.change(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		forgetWarnings(c)
		numbered, newest, err = publishOn(ctx, c)
		if err = settled(c, "publish events", err); err != nil {
			return err
		}
		if numbered == 0 { // others were faster
			return d.confirm(ctx, c, newest)
		}
		d.noteConfirmed(c, newest)
		return nil
	})
	return newest, unconfirmed(err)
}

// confirm returns nil once the commits that this connection sees are confirmed, and with
// them the numbers of events up to newest. The standby confirms commits in their order, and
// a server without one shows them only once they are on its disk. One that gave up waiting
// for its standby, or was restarted, shows commits that a promoted standby may lack, which
// then gives the numbers to other events.
func (d *DB) confirm(ctx context.Context, c *pgx.Conn, newest int64) error {
	if known := d.confirmed.Load(); known != nil && known.timeline == timelineOn(c) && newest <= known.newest {
		return nil
	}
	if err := d.commits.check(); err != nil {
		return err
	}
	forgetWarnings(c)
	_, err := c.Exec(ctx, "SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' THEN "+emptyCommit+" END")
	if err := settled(c, "confirm events", err); err != nil {
		return err
	}
	d.noteConfirmed(c, newest)
	return nil
}

// confirmedEvents are the events up to an id, on one timeline: a former primary may have
// others under the same ids.
type confirmedEvents struct {
	timeline string
	newest   int64
}

func (d *DB) noteConfirmed(c *pgx.Conn, newest int64) {
	now := &confirmedEvents{timelineOn(c), newest}
	for {
		was := d.confirmed.Load()
		if was != nil && (was.timeline > now.timeline || was.timeline == now.timeline && was.newest >= newest) ||
			d.confirmed.CompareAndSwap(was, now) {
			return
		}
	}
}

// timelineOn returns the timeline of a connection's server, or "" with one host.
func timelineOn(c *pgx.Conn) string {
	timeline, _ := c.PgConn().CustomData()[timelineKey].(string)
	return timeline
}

// unconfirmed returns the error of a reader of events for that of a commit.
func unconfirmed(err error) error {
	if errors.Is(err, db.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", db.ErrUnavailable, err)
	}
	return err
}

// publishOn publishes one batch. Outside of an explicit transaction, the two statements
// are one implicit transaction and take one round trip. The second sees what others
// published before it got the lock, because its snapshot is taken afterwards.
func publishOn(ctx context.Context, c *pgx.Conn) (numbered int, newest int64, err error) {
	var batch pgx.Batch
	batch.Queue("SELECT pg_advisory_xact_lock($1)", int64(publishLock))
	batch.Queue(publishEvents, publishBatch)
	results := c.SendBatch(ctx, &batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return 0, 0, err
	}
	if err := results.QueryRow().Scan(&numbered, &newest); err != nil {
		return 0, 0, err
	}
	return numbered, newest, results.Close() // the commit
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
		if _, _, err := publishOn(ctx, c); err != nil {
			return failed("publish events", err)
		}
	}
}

// Parameters: $1 is the id that the list begins after or before, $2 the limit, $3 how many
// events to examine, $4 the types and $5 the id of the pet or subject. They return the first
// that are listed, and the last one that was examined. Like the lists of pets, each orders by
// all columns of its index.
const (
	listEvents = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, $4::smallint[] IS NULL OR type = ANY ($4) AS listed FROM (
				SELECT * FROM events WHERE id > $1 ORDER BY id LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`
	listEventsOfPet = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, type = ANY ($4::smallint[]) AS listed FROM (
				SELECT * FROM events WHERE (pet_id, id) > ($5, $1) AND pet_id <= $5 AND pet_id <> 0
				ORDER BY pet_id, id LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`
	listEventsOfSubject = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, type = ANY ($4::smallint[]) AS listed FROM (
				SELECT * FROM events WHERE (subject_id, id) > ($5, $1) AND subject_id <= $5 AND type > 2
				ORDER BY subject_id, id LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`

	listEventsBefore = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, $4::smallint[] IS NULL OR type = ANY ($4) AS listed FROM (
				SELECT * FROM events WHERE id < $1 ORDER BY id DESC LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`
	listEventsOfPetBefore = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, type = ANY ($4::smallint[]) AS listed FROM (
				SELECT * FROM events WHERE (pet_id, id) < ($5, $1) AND pet_id >= $5 AND pet_id <> 0
				ORDER BY pet_id DESC, id DESC LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`
	listEventsOfSubjectBefore = "SELECT " + db.EventColumns + `, place, listed FROM (
			SELECT *, row_number() OVER () AS place, type = ANY ($4::smallint[]) AS listed FROM (
				SELECT * FROM events WHERE (subject_id, id) < ($5, $1) AND subject_id >= $5 AND type > 2
				ORDER BY subject_id DESC, id DESC LIMIT $3) AS next) AS examined
		WHERE listed OR place = $3 ORDER BY place LIMIT $2`
)

// eventListQuery returns the statement for q and its arguments.
func eventListQuery(q *db.EventQuery, filter *db.EventFilter) (query string, args []any) {
	all, ofPet, ofSubject := listEvents, listEventsOfPet, listEventsOfSubject
	if q.Before != 0 {
		all, ofPet, ofSubject = listEventsBefore, listEventsOfPetBefore, listEventsOfSubjectBefore
	}
	args = []any{q.Start(), q.Limit, filter.Examined(q.Limit), filter.Types}
	switch {
	case filter.PetID != 0:
		return ofPet, append(args, filter.PetID)
	case filter.HasID:
		return ofSubject, append(args, filter.SubjectID)
	}
	return all, args
}

// Events implements [db.DB]. Its statements take one round trip, but don't share a
// snapshot, so the newest id is read first and the oldest last: no event that is added or
// dropped in between is missed.
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	filter := q.Filter()
	page := db.EventPage{All: true, Events: make([]animalstore.Event, 0, min(q.Limit, 128))}
	var batch pgx.Batch
	batch.Queue("SELECT " + newestEvent).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Newest) })
	if !filter.None {
		query, args := eventListQuery(&q, &filter)
		batch.Queue(query, args...).Query(func(rows pgx.Rows) error { return scanEvents(rows, &page, &q, &filter) })
	}
	batch.Queue("SELECT " + firstEvent).QueryRow(func(row pgx.Row) error { return row.Scan(&page.First) })
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if err := c.SendBatch(ctx, &batch).Close(); err != nil {
			return failed("select events", err)
		}
		newest := max(page.Newest, page.Last)
		for i := range page.Events {
			newest = max(newest, page.Events[i].ID)
		}
		return d.confirm(ctx, c, newest)
	})
	if err != nil {
		return nil, q.After, unconfirmed(err)
	}
	return q.Result(&page)
}

func scanEvents(rows pgx.Rows, page *db.EventPage, q *db.EventQuery, filter *db.EventFilter) error {
	for rows.Next() {
		var place int
		var listed bool
		event, err := db.ScanEvent(rows, &place, &listed)
		if err != nil {
			return err
		}
		if page.Last = event.ID; listed {
			page.Events = append(page.Events, event)
		}
		page.All = place < filter.Examined(q.Limit) && len(page.Events) < q.Limit
	}
	return rows.Err()
}

const (
	firstEvent  = "(SELECT coalesce(min(id), 1) - 1 FROM events)" // the id before it
	newestEvent = "(SELECT coalesce(max(id), 0) FROM events)"
)

// EventRange implements [db.DB].
func (d *DB) EventRange(ctx context.Context) (first, newest int64, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return failed("select range of events", c.QueryRow(ctx, "SELECT "+firstEvent+", "+newestEvent).Scan(&first, &newest))
	})
	return first, newest, err
}

const selectEventTime = "SELECT created_at FROM events WHERE id = $1"

// EventsSince implements [db.DB].
func (d *DB) EventsSince(ctx context.Context, since animalstore.Time) (position int64, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var first, newest int64
		err := c.QueryRow(ctx, "SELECT "+firstEvent+", "+newestEvent).Scan(&first, &newest)
		if err == nil {
			position, err = db.PositionSince(first, newest, since, func(id int64) (at int64, found bool, err error) {
				err = c.QueryRow(ctx, selectEventTime, id).Scan(&at)
				if errors.Is(err, pgx.ErrNoRows) {
					return 0, false, nil
				}
				return at, err == nil, err
			})
		}
		if err != nil {
			return failed("search for events", err)
		}
		return d.confirm(ctx, c, position)
	})
	return position, unconfirmed(err)
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
