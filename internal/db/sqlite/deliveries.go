package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const deliveryColumns = "id, event_id, type, state, due_at, created_at, attempts"

// The parameters are those of the lists of pets, with the webhook in ?4.
var (
	listDeliveriesByState = "SELECT " + deliveryColumns + " FROM deliveries WHERE id < ?1 AND webhook_id = ?4 AND state = ?3 ORDER BY id DESC LIMIT +?2"
	listDeliveries        = mergeStatuses(len(animalstore.DeliveryStates), "SELECT "+deliveryColumns+" FROM deliveries WHERE id < ?1 AND webhook_id = ?4 AND state = %d ORDER BY id DESC LIMIT +?2")
)

func scanDelivery(stmt *sqlite.Stmt) (animalstore.Delivery, error) {
	row := db.StoredDelivery{
		ID:        stmt.ColumnInt64(0),
		EventID:   stmt.ColumnInt64(1),
		Type:      stmt.ColumnInt64(2),
		State:     stmt.ColumnInt64(3),
		DueAt:     stmt.ColumnInt64(4),
		CreatedAt: stmt.ColumnInt64(5),
		Attempts:  stmt.ColumnText(6),
	}
	return row.Delivery()
}

// Deliveries implements [db.DB].
func (d *DB) Deliveries(ctx context.Context, q db.DeliveryQuery) ([]animalstore.Delivery, error) {
	deliveries := []animalstore.Delivery{}
	err := d.read(ctx, func(c *sqlite.Conn) error {
		if _, err := selectWebhook(c, q.WebhookID); err != nil {
			return err
		}
		query, state := listDeliveries, int64(0)
		if q.State != "" {
			query, state = listDeliveriesByState, statusIndex(animalstore.DeliveryStates, q.State)
		}
		stmt, err := c.Prepare(query)
		if err != nil {
			return fmt.Errorf("select deliveries: %w", err)
		}
		defer stmt.Reset()
		stmt.BindInt64(1, upperBound(q.Before))
		stmt.BindInt64(2, int64(q.Limit))
		if q.State != "" {
			stmt.BindInt64(3, state)
		}
		stmt.BindInt64(4, q.WebhookID)
		for {
			more, err := stmt.Step()
			if err != nil {
				return fmt.Errorf("select deliveries: %w", err)
			}
			if !more {
				return nil
			}
			delivery, err := scanDelivery(stmt)
			if err != nil {
				return err
			}
			deliveries = append(deliveries, delivery)
		}
	})
	return deliveries, err
}

func selectDelivery(c *sqlite.Conn, webhookID, id int64) (delivery animalstore.Delivery, err error) {
	found := false
	err = sqlitex.Execute(c, "SELECT "+deliveryColumns+" FROM deliveries WHERE id = ? AND webhook_id = ?", &sqlitex.ExecOptions{
		Args:       []any{id, webhookID},
		ResultFunc: func(stmt *sqlite.Stmt) (err error) { found = true; delivery, err = scanDelivery(stmt); return err },
	})
	switch {
	case err != nil:
		return delivery, fmt.Errorf("select delivery: %w", err)
	case !found:
		return delivery, db.ErrNotFound
	}
	return delivery, nil
}

// PingWebhook implements [db.DB].
func (d *DB) PingWebhook(ctx context.Context, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		if _, err := selectWebhook(c, id); err != nil {
			return err
		}
		err := execute(c, "insert ping", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, leased_until, created_at)
			VALUES (?1, 0, ?2, ?3, ?4, 0, 0, '[]', ?3, 0, ?3)`, id, int64(db.PingIndex), at.Milli(), db.PingData)
		if err != nil {
			return err
		}
		delivery, err = selectDelivery(c, id, c.LastInsertRowID())
		return err
	})
	return delivery, err
}

// RetryDelivery implements [db.DB].
func (d *DB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		if _, err := selectDelivery(c, webhookID, id); err != nil {
			return err
		}
		if err := execute(c, "retry delivery", "UPDATE deliveries SET state = 0, due_at = ? WHERE id = ?", at.Milli(), id); err != nil {
			return err
		}
		delivery, err = selectDelivery(c, webhookID, id)
		return err
	})
	return delivery, err
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
	err = sqlitex.Execute(c, "SELECT id, types, from_event, to_event FROM webhooks WHERE from_event < ?1 AND (state = 0 OR to_event > ?2)", &sqlitex.ExecOptions{
		Args: []any{newest, position},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			all = append(all, db.NewReceiver(stmt.ColumnInt64(0), stmt.ColumnText(1), stmt.ColumnInt64(2), stmt.ColumnInt64(3)))
			return nil
		},
	})
	if err != nil {
		return nil, 0, 0, fmt.Errorf("select webhooks: %w", err)
	}
	return all, position, newest, nil
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
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		all, position, newest, err := receivers(c)
		if err != nil {
			return err
		}
		first, last := db.DispatchRange(all, position, newest, max)
		for _, r := range all {
			if err := insertDeliveries(c, &r, first, last, at); err != nil {
				return err
			}
		}
		more = last < newest && len(all) > 0
		return execute(c, "store position", "INSERT INTO webhook_position (id, event_id) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id", last)
	})
	return more, err
}

func insertDeliveries(c *sqlite.Conn, r *db.Receiver, first, last int64, at animalstore.Time) error {
	from, to := r.Part(first, last)
	types := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Types), " ", ","), "[]")
	return execute(c, "insert deliveries", `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, leased_until, created_at)
		SELECT ?1, id, type, created_at, data, 0, 0, '[]', ?4, 0, ?4 FROM events WHERE id > ?2 AND id <= ?3
			AND type IN (SELECT value FROM json_each('[' || ?5 || ']')) ORDER BY id`, r.ID, from, to, at.Milli(), types)
}

// The deliveries of a webhook (?1) that are due (?2). Of a webhook that isn't active,
// only pings are.
const (
	whereDue  = "webhook_id = ?1 AND state = 0 AND due_at <= ?2 AND leased_until <= ?2"
	wherePing = whereDue + " AND event_id = 0"
)

const dueColumns = `SELECT d.id, d.webhook_id, d.event_id, d.type, d.event_time, d.data, d.tries, w.url, w.secret,
	CASE WHEN w.old_secret_until > ?2 THEN w.old_secret ELSE '' END FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id `

func scanDue(stmt *sqlite.Stmt, lease animalstore.Time) animalstore.DueDelivery {
	due := animalstore.DueDelivery{
		ID:        stmt.ColumnInt64(0),
		WebhookID: stmt.ColumnInt64(1),
		EventID:   stmt.ColumnInt64(2),
		Type:      db.DeliveryType(stmt.ColumnInt64(3)),
		Time:      animalstore.AtMilli(stmt.ColumnInt64(4)),
		Data:      json.RawMessage(stmt.ColumnText(5)),
		Tries:     int(stmt.ColumnInt64(6)),
		URL:       stmt.ColumnText(7),
		Secrets:   []string{stmt.ColumnText(8)},
		Lease:     lease,
	}
	if old := stmt.ColumnText(9); old != "" {
		due.Secrets = append(due.Secrets, old)
	}
	return due
}

// claimOf claims at most n deliveries of a webhook.
func claimOf(c *sqlite.Conn, webhookID, state int64, now, lease animalstore.Time, n int64) (claimed []animalstore.DueDelivery, err error) {
	where := whereDue
	if state != 0 {
		where = wherePing
	}
	err = sqlitex.Execute(c, dueColumns+"WHERE d.id IN (SELECT id FROM deliveries WHERE "+where+" ORDER BY due_at LIMIT +?3) ORDER BY d.due_at, d.id", &sqlitex.ExecOptions{
		Args:       []any{webhookID, now.Milli(), n},
		ResultFunc: func(stmt *sqlite.Stmt) error { claimed = append(claimed, scanDue(stmt, lease)); return nil },
	})
	if err != nil {
		return nil, fmt.Errorf("select due deliveries: %w", err)
	}
	for _, due := range claimed {
		if err := execute(c, "claim delivery", "UPDATE deliveries SET leased_until = ? WHERE id = ?", lease.Milli(), due.ID); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

type webhookState struct{ id, state int64 }

func webhookStates(c *sqlite.Conn) (all []webhookState, err error) {
	err = sqlitex.Execute(c, "SELECT id, state FROM webhooks", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		all = append(all, webhookState{stmt.ColumnInt64(0), stmt.ColumnInt64(1)})
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("select webhooks: %w", err)
	}
	return all, nil
}

const countClaims = "SELECT count(*) FROM deliveries WHERE webhook_id = ?1 AND leased_until <> 0 AND leased_until > ?2"

// withDue returns which of the webhooks have a delivery that is due and may be claimed.
func withDue(c *sqlite.Conn, all []webhookState, now animalstore.Time) (due []webhookState, err error) {
	for _, w := range all {
		where := whereDue
		if w.state != 0 {
			where = wherePing
		}
		found, err := selectInt(c, "look for due deliveries", "SELECT 1 FROM deliveries WHERE "+where+" LIMIT 1", w.id, now.Milli())
		if err != nil {
			return nil, err
		}
		busy, err := selectInt(c, "count claims", countClaims, w.id, now.Milli())
		if err != nil {
			return nil, err
		}
		if found != 0 && busy < animalstore.MaxInFlight {
			due = append(due, w)
		}
	}
	return due, nil
}

// The earliest time after ?2 at which a delivery of a webhook (?1) becomes due, or a
// claim ends. Each is found at the beginning of a part of an index.
const (
	nextDue  = "SELECT due_at FROM deliveries WHERE webhook_id = ?1 AND state = 0 AND due_at > ?2 ORDER BY due_at LIMIT 1"
	nextPing = "SELECT due_at FROM deliveries WHERE webhook_id = ?1 AND state = 0 AND event_id = 0 AND due_at > ?2 ORDER BY due_at LIMIT 1"
	nextFree = "SELECT leased_until FROM deliveries WHERE webhook_id = ?1 AND leased_until <> 0 AND leased_until > ?2 ORDER BY leased_until LIMIT 1"
)

// WebhookWork implements [db.DB].
func (d *DB) WebhookWork(ctx context.Context, now animalstore.Time) (work animalstore.WebhookWork, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) error {
		work = animalstore.WebhookWork{}
		all, err := webhookStates(c)
		if err != nil || len(all) == 0 {
			return err
		}
		getting, position, newest, err := receivers(c)
		if err != nil {
			return err
		}
		due, err := withDue(c, all, now)
		if err != nil {
			return err
		}
		work = animalstore.WebhookWork{Webhooks: true, Events: len(getting) > 0 && position < newest, Due: len(due) > 0}
		for _, w := range all {
			queries := []string{nextDue, nextFree}
			if w.state != 0 {
				queries[0] = nextPing
			}
			for _, query := range queries {
				next, err := selectInt(c, "look for the next delivery", query, w.id, now.Milli())
				if err != nil {
					return err
				}
				if next != 0 && (work.Next.IsZero() || next < work.Next.Milli()) {
					work.Next = animalstore.AtMilli(next)
				}
			}
		}
		return nil
	})
	return work, err
}

// ClaimDeliveries implements [db.DB].
func (d *DB) ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) (claimed []animalstore.DueDelivery, err error) {
	var waiting []webhookState
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		all, err := webhookStates(c)
		if err == nil {
			waiting, err = withDue(c, all, now)
		}
		return err
	})
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		claimed = nil
		for _, w := range waiting {
			busy, err := selectInt(c, "count claims", countClaims, w.id, now.Milli())
			if err != nil {
				return err
			}
			if busy >= animalstore.MaxInFlight {
				continue
			}
			// It may have been paused since it was read.
			state, err := selectInt(c, "select state", "SELECT state FROM webhooks WHERE id = ?", w.id)
			if err != nil {
				return err
			}
			more, err := claimOf(c, w.id, state, now, lease, animalstore.MaxInFlight-busy)
			if err != nil {
				return err
			}
			claimed = append(claimed, more...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// FinishDelivery implements [db.DB].
func (d *DB) FinishDelivery(ctx context.Context, r animalstore.DeliveryResult, now, lease animalstore.Time) (next *animalstore.DueDelivery, disabled animalstore.Reason, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		next, disabled = nil, ""
		ours, err := storeResult(c, &r)
		if err != nil || !ours {
			return err
		}
		webhook, err := selectWebhook(c, r.Delivery.WebhookID)
		if err != nil { // it was deleted
			return ignoreNotFound(err)
		}
		if disabled, err = storeHealth(c, webhook, &r); err != nil || disabled != "" || lease.IsZero() || webhook.State != animalstore.WebhookActive {
			return err
		}
		claimed, err := claimOf(c, webhook.ID, 0, now, lease, 1)
		if len(claimed) > 0 {
			next = &claimed[0]
		}
		return err
	})
	return next, disabled, err
}

func ignoreNotFound(err error) error {
	if err == db.ErrNotFound {
		return nil
	}
	return err
}

// storeResult updates a delivery, if its claim is still the one that the result is of.
func storeResult(c *sqlite.Conn, r *animalstore.DeliveryResult) (ours bool, err error) {
	attempts := ""
	err = sqlitex.Execute(c, "SELECT attempts FROM deliveries WHERE id = ? AND leased_until = ?", &sqlitex.ExecOptions{
		Args:       []any{r.Delivery.ID, r.Delivery.Lease.Milli()},
		ResultFunc: func(stmt *sqlite.Stmt) error { ours, attempts = true, stmt.ColumnText(0); return nil },
	})
	if err != nil {
		return false, fmt.Errorf("select claim: %w", err)
	}
	if !ours {
		return false, nil
	}
	if attempts, err = db.AddAttempt(attempts, r.Attempt); err != nil {
		return false, err
	}
	return true, execute(c, "store attempt", "UPDATE deliveries SET state = ?, tries = tries + 1, attempts = ?, due_at = ?, leased_until = 0 WHERE id = ?",
		statusIndex(animalstore.DeliveryStates, r.State), attempts, r.Next.Milli(), r.Delivery.ID)
}

// storeHealth updates a webhook after an attempt.
func storeHealth(c *sqlite.Conn, webhook animalstore.Webhook, r *animalstore.DeliveryResult) (disabled animalstore.Reason, err error) {
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
	changedWebhook := webhook
	changedWebhook.LastDeliveredAt, changedWebhook.LastFailedAt = animalstore.AtMilli(after.DeliveredAt), animalstore.AtMilli(after.FailedAt)
	changedWebhook.Disable(disable)
	return disable, storeWebhook(c, db.Actor{}, webhook, changedWebhook)
}

// ReleaseDeliveries implements [db.DB].
func (d *DB) ReleaseDeliveries(ctx context.Context, due []animalstore.DueDelivery) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		for i := range due {
			err := execute(c, "release delivery", "UPDATE deliveries SET leased_until = 0 WHERE id = ? AND leased_until = ?", due[i].ID, due[i].Lease.Milli())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ReleaseAbandoned implements [db.DB]. Whoever claims holds the lock of a server.
func (d *DB) ReleaseAbandoned(ctx context.Context) error {
	found := int64(0)
	err := d.read(ctx, func(c *sqlite.Conn) (err error) {
		found, err = selectInt(c, "look for claims", "SELECT 1 FROM deliveries WHERE leased_until <> 0 LIMIT 1")
		return err
	})
	if err != nil || found == 0 {
		return err
	}
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		return execute(c, "release deliveries", "UPDATE deliveries SET leased_until = 0 WHERE leased_until <> 0")
	})
}
