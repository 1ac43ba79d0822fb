package sqlite

import (
	"context"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

const deliveryColumns = "id, event_id, type, state, due_at, created_at, attempts"

// ?1 is the upper bound of ids, ?2 the limit, ?3 the webhook and ?4 the state.
var (
	listDeliveries, listDeliveriesByState = listsOfDeliveries(deliveryColumns)
	listTimes, listTimesByState           = listsOfDeliveries("id, state, due_at, created_at")
)

func listsOfDeliveries(columns string) (all, byState string) {
	query := "SELECT " + columns + " FROM deliveries WHERE id < ?1 AND webhook_id = ?3 AND state = %s ORDER BY id DESC LIMIT +?2"
	return mergeStatuses(db.StoredIndexes(animalstore.DeliveryStates), fmt.Sprintf(query, "%d"), newestFirst), fmt.Sprintf(query, "?4")
}

// scanTimes scans what decides whether a delivery is retried.
func scanTimes(stmt *sqlite.Stmt) (db.StoredDelivery, error) {
	return db.StoredDelivery{ID: stmt.ColumnInt64(0), State: stmt.ColumnInt64(1), DueAt: stmt.ColumnInt64(2), CreatedAt: stmt.ColumnInt64(3)}, nil
}

func scanDelivery(stmt *sqlite.Stmt) (animalstore.Delivery, error) {
	row := storedDelivery(stmt)
	return row.Delivery()
}

func scanDeliveryWithBody(stmt *sqlite.Stmt) (animalstore.DeliveryWithBody, error) {
	row := storedDelivery(stmt)
	row.EventTime, row.Data = stmt.ColumnInt64(7), stmt.ColumnText(8)
	return row.WithBody()
}

func storedDelivery(stmt *sqlite.Stmt) db.StoredDelivery {
	return db.StoredDelivery{
		ID:        stmt.ColumnInt64(0),
		EventID:   stmt.ColumnInt64(1),
		Type:      stmt.ColumnInt64(2),
		State:     stmt.ColumnInt64(3),
		DueAt:     stmt.ColumnInt64(4),
		CreatedAt: stmt.ColumnInt64(5),
		Attempts:  stmt.ColumnText(6),
	}
}

// Deliveries implements [db.DB].
func (d *DB) Deliveries(ctx context.Context, q db.DeliveryQuery) ([]animalstore.Delivery, error) {
	query, args := listDeliveries, []any{db.UpperBound(q.Before), q.Limit, q.WebhookID}
	if q.State != "" {
		query, args = listDeliveriesByState, append(args, db.StoredIndex(animalstore.DeliveryStates, q.State))
	}
	return resultOf(ctx, d.read, func(c *sqlite.Conn) ([]animalstore.Delivery, error) {
		if _, err := selectWebhook(c, q.WebhookID); err != nil {
			return nil, err
		}
		return selectAll(c, "select deliveries", scanDelivery, query, args...)
	})
}

func selectDelivery(c *sqlite.Conn, webhookID, id int64) (animalstore.Delivery, error) {
	return selectOne(c, "select delivery", scanDelivery, "SELECT "+deliveryColumns+" FROM deliveries WHERE id = ? AND webhook_id = ?", id, webhookID)
}

// Delivery implements [db.DB].
func (d *DB) Delivery(ctx context.Context, webhookID, id int64) (animalstore.DeliveryWithBody, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) (animalstore.DeliveryWithBody, error) {
		return selectOne(c, "select delivery", scanDeliveryWithBody,
			"SELECT "+deliveryColumns+", event_time, data FROM deliveries WHERE id = ? AND webhook_id = ?", id, webhookID)
	})
}

// PingWebhook implements [db.DB].
func (d *DB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (animalstore.Delivery, error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (delivery animalstore.Delivery, err error) {
		if _, err := selectWebhook(c, id); err != nil {
			return delivery, err
		}
		err = execute(c, "insert ping", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, created_at)
			VALUES (?1, 0, ?2, ?3, ?4, `+db.SQLDeliveryPending+`, 0, '[]', ?3, ?3)`, id, db.DeliveryTypeIndex(eventType), at.Milli(), db.PingData(eventType, at))
		if err != nil {
			return delivery, err
		}
		return selectDelivery(c, id, c.LastInsertRowID())
	})
}

// RetryDelivery implements [db.DB].
func (d *DB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (animalstore.Delivery, error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (animalstore.Delivery, error) {
		if delivery, err := selectDelivery(c, webhookID, id); err != nil {
			return delivery, err
		}
		if err := execute(c, "retry delivery", "UPDATE deliveries SET state = "+db.SQLDeliveryPending+", tries = 0, retries = retries + 1, due_at = ? WHERE id = ?", at.Milli(), id); err != nil {
			return animalstore.Delivery{}, err
		}
		return selectDelivery(c, webhookID, id)
	})
}

// RetryDeliveries implements [db.DB].
func (d *DB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (retried int, next int64, err error) {
	query, args := listTimes, []any{db.UpperBound(q.Before), db.MaxRetried, q.WebhookID}
	if q.State != "" {
		query, args = listTimesByState, append(args, q.StoredState())
	}
	var rows []db.StoredDelivery
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		if _, err := selectWebhook(c, q.WebhookID); err != nil {
			return err
		}
		rows, err = selectAll(c, "select deliveries", scanTimes, query, args...)
		return err
	})
	ids, next := q.Select(rows)
	if err != nil || len(ids) == 0 {
		return 0, next, err
	}
	retried, err = resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (int, error) {
		// The state can have changed since.
		err := execute(c, "retry deliveries", "UPDATE deliveries SET state = "+db.SQLDeliveryPending+`, tries = 0, retries = retries + 1,
			due_at = CASE state WHEN `+db.SQLDeliveryPending+` THEN min(due_at, ?1) ELSE ?1 END
			WHERE id IN (SELECT value FROM json_each(?2)) AND (?3 < 0 OR state = ?3)`, at.Milli(), jsonArray(ids), q.StoredState())
		return c.Changes(), err
	})
	return retried, next, err
}

// DropDeliveries implements [db.DB]. The oldest have the lowest ids.
func (d *DB) DropDeliveries(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop deliveries",
		"DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries ORDER BY id LIMIT ?2) AND created_at < ?1", before, max)
}

// receivers returns the webhooks that may get events after the position.
func receivers(c *sqlite.Conn) (all []db.Receiver, position, newest int64, err error) {
	if _, newest, err = eventRange(c); err != nil {
		return nil, 0, 0, err
	}
	if position, err = selectInt(c, "select position", "SELECT event_id FROM webhook_position WHERE id = 1"); err != nil {
		return nil, 0, 0, err
	}
	scan := func(stmt *sqlite.Stmt) (db.Receiver, error) {
		return db.NewReceiver(stmt.ColumnInt64(0), stmt.ColumnText(1), stmt.ColumnInt64(2), stmt.ColumnInt64(3)), nil
	}
	all, err = selectAll(c, "select webhooks", scan,
		"SELECT id, types, from_event, to_event FROM webhooks WHERE from_event < ?1 AND (state = "+db.SQLWebhookActive+" OR to_event > ?2)", newest, position)
	return all, position, newest, err
}

// DispatchEvents implements [db.DB].
func (d *DB) DispatchEvents(ctx context.Context, at animalstore.Time, max int) (more bool, err error) {
	idle := false
	err = d.read(ctx, func(c *sqlite.Conn) error {
		all, position, newest, err := receivers(c)
		idle = len(all) == 0 || position >= newest
		return err
	})
	if err != nil || idle {
		return false, err
	}
	return resultOf(ctx, d.writer.doWithoutSavepoint, func(c *sqlite.Conn) (more bool, err error) {
		all, position, newest, err := receivers(c)
		if err != nil {
			return false, err
		}
		first, last := db.DispatchRange(all, position, newest, max)
		for _, r := range all {
			if err := insertDeliveries(c, &r, first, last, at); err != nil {
				return false, err
			}
		}
		more = last < newest && len(all) > 0
		return more, execute(c, "store position", "INSERT INTO webhook_position (id, event_id) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id", last)
	})
}

func insertDeliveries(c *sqlite.Conn, r *db.Receiver, first, last int64, at animalstore.Time) error {
	from, to := r.EventRange(first, last)
	return execute(c, "insert deliveries", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, created_at)
		SELECT ?1, id, type, created_at, data, `+db.SQLDeliveryPending+`, 0, '[]', ?4, ?4 FROM events WHERE id > ?2 AND id <= ?3
			AND type IN (SELECT value FROM json_each(?5)) ORDER BY id`, r.ID, from, to, at.Milli(), jsonArray(r.Types))
}

// dispatchBacklog creates deliveries for the events that haven't been dispatched to a webhook
// yet. From then on it gets only later ones.
func dispatchBacklog(c *sqlite.Conn, webhookID int64) error {
	all, position, newest, err := receivers(c)
	if err != nil {
		return err
	}
	receiver, err := db.BacklogReceiver(all, webhookID, position, newest)
	if err != nil {
		return err
	}
	if receiver != nil {
		if err := insertDeliveries(c, receiver, position, newest, animalstore.At(time.Now())); err != nil {
			return err
		}
	}
	return execute(c, "restart webhook", "UPDATE webhooks SET from_event = ?, to_event = 0 WHERE id = ?", newest, webhookID)
}

// FinishDelivery implements [db.DB].
func (d *DB) FinishDelivery(ctx context.Context, r db.DeliveryResult, now, lease animalstore.Time) (next *db.ClaimedDelivery, disabled animalstore.OptionalText, err error) {
	if !d.claims.hold(r.Delivery) {
		return nil, "", nil
	}
	type outcome struct {
		stored   bool // else it was dropped
		disabled animalstore.OptionalText
	}
	after, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (after outcome, err error) {
		if err := storeResult(c, &r); err != nil {
			return after, ignoreNotFound(err)
		}
		after.stored = true
		webhook, err := selectWebhook(c, r.Delivery.WebhookID)
		if err != nil { // it was deleted
			return after, ignoreNotFound(err)
		}
		after.disabled, err = storeHealth(c, webhook, &r)
		return after, err
	})
	if err != nil {
		return nil, "", err
	}
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	d.claims.end(r.Delivery)
	if lease.IsZero() || !after.stored {
		return nil, after.disabled, nil
	}
	// The result is stored, so this isn't an error: what can't be read now is claimed
	// later.
	_ = d.read(ctx, func(c *sqlite.Conn) error {
		claimed, err := d.claims.claim(c, r.Delivery.WebhookID, now, lease, 1)
		if len(claimed) > 0 {
			next = &claimed[0]
		}
		return err
	})
	return next, after.disabled, nil
}

func ignoreNotFound(err error) error {
	if err == db.ErrNotFound {
		return nil
	}
	return err
}

// storeResult updates a delivery. It can be repeated, if it isn't known whether it was
// stored.
func storeResult(c *sqlite.Conn, r *db.DeliveryResult) error {
	scan := func(stmt *sqlite.Stmt) (string, error) { return stmt.ColumnText(0), nil }
	before, err := selectOne(c, "select attempts", scan, "SELECT attempts FROM deliveries WHERE id = ?", r.Delivery.ID)
	if err != nil {
		return err
	}
	attempts, err := db.AddAttempt(before, r.Attempt)
	if err != nil {
		return err
	}
	if err := execute(c, "store attempt", "UPDATE deliveries SET attempts = ? WHERE id = ?", attempts, r.Delivery.ID); err != nil {
		return err
	}
	return execute(c, "store result", "UPDATE deliveries SET state = ?, tries = ?, due_at = ? WHERE id = ? AND retries = ?",
		db.StoredIndex(animalstore.DeliveryStates, r.State), r.Delivery.Tries+1, r.Next.Milli(), r.Delivery.ID, r.Delivery.Retries)
}

// storeHealth updates a webhook after an attempt.
func storeHealth(c *sqlite.Conn, webhook animalstore.Webhook, r *db.DeliveryResult) (disabled animalstore.OptionalText, err error) {
	health := db.WebhookHealth{DeliveredAt: webhook.LastDeliveredAt.Milli(), FailedAt: webhook.LastFailedAt.Milli()}
	health.FailingSince, err = selectInt(c, "select failures", "SELECT failing_since FROM webhooks WHERE id = ?", webhook.ID)
	if err != nil {
		return "", err
	}
	after, changed, disable := health.After(r)
	if changed {
		err = execute(c, "store health", "UPDATE webhooks SET delivered_at = ?, failed_at = ?, failing_since = ? WHERE id = ?",
			after.DeliveredAt, after.FailedAt, after.FailingSince, webhook.ID)
		if err != nil {
			return "", err
		}
	}
	if disable == "" || webhook.State != animalstore.WebhookActive {
		return "", nil
	}
	return disable, storeWebhook(c, db.Service, webhook, after.Disabled(webhook, disable))
}
