package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// insertEvent adds an event in the transaction of its change. Write transactions run
// one at a time, so ids rise in the order of commits.
func insertEvent(c *sqlite.Conn, by db.Actor, t animalstore.EventType, subjectID int64, data string) error {
	stmt, err := c.Prepare("INSERT INTO events (type, subject_id, created_at, key_id, request_id, data) VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return fmt.Errorf("insert event: %w", err)
	}
	stmt.BindInt64(1, db.EventTypeIndex(t))
	stmt.BindInt64(2, subjectID)
	stmt.BindInt64(3, time.Now().UnixMilli())
	stmt.BindInt64(4, by.KeyID)
	stmt.BindText(5, by.RequestID)
	stmt.BindText(6, data)
	if _, err := stmt.Step(); err != nil {
		return fmt.Errorf("insert event: %w", err)
	}
	return nil
}

const eventColumns = "id, type, subject_id, created_at, key_id, request_id, data"

// Parameters: the bounds of ids, the limit and, if only one subject's are wanted, its id.
const (
	listEvents          = "SELECT " + eventColumns + " FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT +?3"
	listEventsBySubject = "SELECT " + eventColumns + " FROM events WHERE subject_id = ?4 AND id > ?1 AND id <= ?2 ORDER BY id LIMIT +?3"
)

// Events implements [db.DB]. Its statements don't share a snapshot, so the newest id is
// read first and the oldest last: no event that is added or dropped meanwhile is missed.
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	filter := q.Filter()
	err = d.read(ctx, func(c *sqlite.Conn) error {
		_, newest, err := eventRange(c)
		if err != nil {
			return err
		}
		if q.After > newest {
			return db.ErrEventsExpired
		}
		if events, last, err = selectEvents(c, q, &filter, newest); err != nil {
			return err
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

// selectEvents returns the events up to newest that match, and the last id it looked
// at.
func selectEvents(c *sqlite.Conn, q db.EventQuery, filter *db.EventFilter, newest int64) (events []animalstore.Event, last int64, err error) {
	if filter.None || q.After == newest {
		return []animalstore.Event{}, newest, nil
	}
	events = make([]animalstore.Event, 0, min(q.Limit, 128))
	query := listEvents
	if filter.HasID {
		query = listEventsBySubject
	}
	stmt, err := c.Prepare(query)
	if err != nil {
		return nil, 0, fmt.Errorf("select events: %w", err)
	}
	defer stmt.Reset()
	look := filter.Look(q.Limit)
	if filter.HasID {
		stmt.BindInt64(4, filter.SubjectID)
	}
	stmt.BindInt64(1, q.After)
	stmt.BindInt64(2, newest)
	stmt.BindInt64(3, int64(look))
	for looked := 0; looked < look && len(events) < q.Limit; looked++ {
		more, err := stmt.Step()
		if err != nil {
			return nil, 0, fmt.Errorf("select events: %w", err)
		}
		if !more {
			return events, newest, nil
		}
		last = stmt.ColumnInt64(0)
		if filter.Matches(stmt.ColumnInt64(1), stmt.ColumnInt64(2)) {
			events = append(events, scanEvent(stmt))
		}
	}
	return events, last, nil
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
	stmt, err := c.Prepare("SELECT coalesce((SELECT min(id) FROM events), 1) - 1, coalesce((SELECT max(id) FROM events), 0)")
	if err != nil {
		return 0, 0, fmt.Errorf("select range of events: %w", err)
	}
	defer stmt.Reset()
	if _, err := stmt.Step(); err != nil {
		return 0, 0, fmt.Errorf("select range of events: %w", err)
	}
	return stmt.ColumnInt64(0), stmt.ColumnInt64(1), nil
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
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		first, newest, err := eventRange(c)
		if err != nil {
			return err
		}
		end := min(first+1+int64(max), newest) // the first event that stays
		err = sqlitex.Execute(c, "SELECT id FROM events WHERE id < ? AND created_at >= ? ORDER BY id LIMIT 1", &sqlitex.ExecOptions{
			Args:       []any{end, before.Milli()},
			ResultFunc: func(stmt *sqlite.Stmt) error { end = stmt.ColumnInt64(0); return nil },
		})
		if err != nil {
			return fmt.Errorf("drop events: %w", err)
		}
		if err := sqlitex.Execute(c, "DELETE FROM events WHERE id < ?", &sqlitex.ExecOptions{Args: []any{end}}); err != nil {
			return fmt.Errorf("drop events: %w", err)
		}
		dropped = c.Changes()
		return nil
	})
	return dropped, err
}
