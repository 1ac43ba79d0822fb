package sqlite

import (
	"context"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// ?1 is the upper bound of ids, ?2 the limit, ?3 the webhook and ?4 the states. Each state is
// read from its part of an index, only up to the limit.
const listDeliveries = "SELECT " + db.DeliveryColumns + `
	FROM (SELECT value AS one FROM json_each(?4)) JOIN deliveries ON id IN (
	SELECT id FROM deliveries WHERE webhook_id = ?3 AND state = one AND id < ?1 ORDER BY id DESC LIMIT +?2)
	ORDER BY id DESC LIMIT +?2`

// Deliveries implements [db.DB].
func (d *DB) Deliveries(ctx context.Context, webhookID int64, q animalstore.DeliveryQuery, page db.Page) ([]animalstore.Delivery, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) ([]animalstore.Delivery, error) {
		if _, err := selectWebhook(c, webhookID); err != nil {
			return nil, err
		}
		return selectAll(c, "select deliveries", db.ScanDelivery, listDeliveries, db.UpperBound(page.After),
			page.Limit, webhookID, db.StoredStates(q))
	})
}

func selectDelivery(c *sqlite.Conn, webhookID, id int64) (animalstore.Delivery, error) {
	return selectOne(c, "select delivery", db.ScanDelivery,
		"SELECT "+db.DeliveryColumns+" FROM deliveries WHERE id = ? AND webhook_id = ?", id, webhookID)
}

// Delivery implements [db.DB].
func (d *DB) Delivery(ctx context.Context, webhookID, id int64) (animalstore.DeliveryWithBody, error) {
	return readOne(ctx, d, "select delivery", db.ScanDeliveryWithBody,
		"SELECT "+db.DeliveryColumns+", event_time, data FROM deliveries WHERE id = ? AND webhook_id = ?", id, webhookID)
}

// PingWebhook implements [db.DB].
func (d *DB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (animalstore.Delivery, error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (delivery animalstore.Delivery, err error) {
		if _, err := selectWebhook(c, id); err != nil {
			return delivery, err
		}
		err = execute(c, "insert ping", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, created_at)
			VALUES (?1, 0, ?2, ?3, ?4, 0, 0, '[]', ?3, ?3)`, id, db.DeliveryTypeIndex(eventType), at.Milli(), db.PingData(eventType, at))
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
		if err := execute(c, "retry delivery",
			"UPDATE deliveries SET state = 0, tries = 0, retries = retries + 1, due_at = ? WHERE id = ?", at.Milli(), id); err != nil {
			return animalstore.Delivery{}, err
		}
		return selectDelivery(c, webhookID, id)
	})
}

// RetryDeliveries implements [db.DB].
func (d *DB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (retried int, next int64, err error) {
	examined, err := d.Deliveries(ctx, q.WebhookID, animalstore.DeliveryQuery{State: q.State},
		db.Page{After: q.Before, Limit: db.MaxRetried})
	ids, next := q.Select(examined)
	if err != nil || len(ids) == 0 {
		return 0, next, err
	}
	retried, err = resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (int, error) {
		// The state can have changed since.
		err := execute(c, "retry deliveries", `UPDATE deliveries SET state = 0, tries = 0, retries = retries + 1,
			due_at = CASE state WHEN 0 THEN min(due_at, ?1) ELSE ?1 END
			WHERE id IN (SELECT value FROM json_each(?2)) AND (?3 < 0 OR state = ?3)`, at.Milli(), ids, q.StoredState())
		return c.Changes(), err
	})
	return retried, next, err
}

// DropDeliveries implements [db.DB]. The oldest have the lowest ids.
func (d *DB) DropDeliveries(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop deliveries",
		"DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries ORDER BY id LIMIT ?2) AND created_at < ?1", before, max)
}

// receivers returns the webhooks that may get events after the position. Without any, the
// position and the newest event are 0.
func receivers(c *sqlite.Conn) (all []db.Receiver, position, newest int64, err error) {
	all, err = selectAll(c, "select webhooks", db.ScanReceiver(&position, &newest), `SELECT id, types, from_event, to_event, position, newest
		FROM (SELECT coalesce(max(id), 0) AS newest FROM events), (SELECT coalesce(max(event_id), 0) AS position FROM webhook_position)
		JOIN webhooks ON from_event < newest AND (state = 0 OR to_event > position)`)
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
		if err != nil || len(all) == 0 {
			return false, err
		}
		first, last := db.DispatchRange(all, position, newest, max)
		for _, r := range all {
			if err := insertDeliveries(c, &r, first, last, at); err != nil {
				return false, err
			}
		}
		return last < newest, execute(c, "store position",
			"INSERT INTO webhook_position (id, event_id) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id", last)
	})
}

func insertDeliveries(c *sqlite.Conn, r *db.Receiver, first, last int64, at animalstore.Time) error {
	from, to := r.EventRange(first, last)
	return execute(c, "insert deliveries", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, created_at)
		SELECT ?1, id, type, created_at, data, 0, 0, '[]', ?4, ?4 FROM events WHERE id > ?2 AND id <= ?3
			AND type IN (SELECT value FROM json_each(?5)) ORDER BY id`, r.ID, from, to, at.Milli(), r.Types)
}

// dispatchBacklog creates deliveries for the events that haven't been dispatched to a webhook
// yet. From then on it gets only later ones.
func dispatchBacklog(c *sqlite.Conn, webhookID int64) error {
	_, newest, err := eventRange(c)
	if err != nil {
		return err
	}
	all, position, _, err := receivers(c)
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
		webhook, err := selectOne(c, "select webhook", scanState, "SELECT id, state FROM webhooks WHERE id = ?", r.Delivery.WebhookID)
		if err != nil {
			return err
		}
		claimed, err := d.claims.claim(c, webhook, now, lease, 1)
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
	before, err := selectOne(c, "select attempts", db.ScanValue[string], "SELECT attempts FROM deliveries WHERE id = ?", r.Delivery.ID)
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
