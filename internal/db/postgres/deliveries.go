package postgres

import (
	"context"
	"errors"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const selectDelivery = "SELECT " + db.DeliveryColumns + " FROM deliveries WHERE id = $1 AND webhook_id = $2"

// $1 is the upper bound of ids, $2 the limit, $3 the webhook and $4 the states.
const listDeliveries = "SELECT delivery.* FROM unnest($4::smallint[]) AS one (state) " +
	"CROSS JOIN LATERAL (SELECT " + db.DeliveryColumns + ` FROM deliveries
		WHERE (webhook_id, state, id) < ($3, one.state, $1) AND (webhook_id, state) >= ($3, one.state)
		ORDER BY webhook_id DESC, state DESC, id DESC LIMIT $2) AS delivery
	ORDER BY id DESC LIMIT $2`

// Delivery implements [db.DB].
func (d *DB) Delivery(ctx context.Context, webhookID, id int64) (animalstore.DeliveryWithBody, error) {
	return readOne(ctx, d, "select delivery", db.ScanDeliveryWithBody,
		"SELECT "+db.DeliveryColumns+", event_time, data FROM deliveries WHERE id = $1 AND webhook_id = $2", id, webhookID)
}

// Deliveries implements [db.DB].
func (d *DB) Deliveries(ctx context.Context, webhookID int64, q animalstore.DeliveryQuery, page db.Page) ([]animalstore.Delivery, error) {
	if _, err := d.Webhook(ctx, webhookID); err != nil {
		return nil, err
	}
	return list(ctx, d, "select deliveries", db.ScanDelivery, listDeliveries, db.UpperBound(page.After), page.Limit,
		webhookID, db.StoredStates(q))
}

// PingWebhook implements [db.DB].
func (d *DB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := lockOne(ctx, tx, "lock webhook", db.ScanWebhook, selectWebhook, id); err != nil {
			return err
		}
		delivery, err = db.ScanDelivery(tx.QueryRow(ctx, `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, leased_until, created_at)
			VALUES ($1, 0, $2, $3, $4, 0, 0, '[]', $3, 0, $3) RETURNING `+db.DeliveryColumns, id, db.DeliveryTypeIndex(eventType), at.Milli(), db.PingData(eventType, at)))
		return failed("insert ping", err)
	})
	return delivery, err
}

// RetryDelivery implements [db.DB].
func (d *DB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err = lockOne(ctx, tx, "lock delivery", db.ScanDelivery, selectDelivery, id, webhookID); err != nil {
			return err
		}
		delivery, err = db.ScanDelivery(tx.QueryRow(ctx,
			"UPDATE deliveries SET state = 0, tries = 0, retries = retries + 1, due_at = $2 WHERE id = $1 RETURNING "+db.DeliveryColumns, id, at.Milli()))
		return failed("retry delivery", err)
	})
	return delivery, err
}

// retryDeliveries leaves out those whose state has changed since they were selected. It
// locks in the order of ids, so that two of these can't deadlock.
const retryDeliveries = `WITH chosen AS (SELECT id FROM deliveries WHERE id = ANY ($2) AND ($3 < 0 OR state = $3) ORDER BY id FOR NO KEY UPDATE)
	UPDATE deliveries d SET state = 0, tries = 0, retries = d.retries + 1,
		due_at = CASE d.state WHEN 0 THEN least(d.due_at, $1) ELSE $1 END FROM chosen WHERE d.id = chosen.id`

// RetryDeliveries implements [db.DB].
func (d *DB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (retried int, next int64, err error) {
	examined, err := d.Deliveries(ctx, q.WebhookID, animalstore.DeliveryQuery{State: q.State},
		db.Page{After: q.Before, Limit: db.MaxRetried})
	ids, next := q.Select(examined)
	if err != nil || len(ids) == 0 {
		return 0, next, err
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, retryDeliveries, at.Milli(), ids, q.StoredState())
		retried = int(tag.RowsAffected())
		return failed("retry deliveries", err)
	})
	return retried, next, err
}

// DropDeliveries implements [db.DB]. The oldest have the lowest ids.
func (d *DB) DropDeliveries(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return d.drop(ctx, "drop deliveries", "DELETE FROM deliveries WHERE id = ANY (ARRAY(SELECT id FROM deliveries ORDER BY id LIMIT $2)) AND created_at < $1", before, max)
}

const selectReceivers = `SELECT w.id, w.types, w.from_event, w.to_event, at.position, at.newest FROM (SELECT ` + newestEvent + ` AS newest,
	coalesce((SELECT event_id FROM webhook_position WHERE id = 1), 0) AS position) AS at
	JOIN webhooks w ON w.from_event < at.newest AND (w.state = 0 OR w.to_event > at.position)`

// receivers returns the webhooks that may get events after the position.
func receivers(ctx context.Context, q querier) (all []db.Receiver, position, newest int64, err error) {
	all, err = selectAll(ctx, q, "select webhooks", db.ScanReceiver(&position, &newest), selectReceivers)
	return all, position, newest, err
}

const insertDeliveries = `INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, leased_until, created_at)
	SELECT $1, id, type, created_at, data, 0, 0, '[]', $4, 0, $4 FROM events WHERE id > $2 AND id <= $3 AND type = ANY ($5) ORDER BY id`

// DispatchEvents implements [db.DB].
func (d *DB) DispatchEvents(ctx context.Context, at animalstore.Time, max int) (more bool, err error) {
	idle := false
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		all, position, newest, err := receivers(ctx, c)
		idle = len(all) == 0 || position >= newest
		return err
	})
	if err != nil || idle {
		return false, err
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		more = false
		alone := false
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(dispatchLock)).Scan(&alone); err != nil || !alone {
			return failed("lock the dispatcher", err)
		}
		all, position, newest, err := receivers(ctx, tx)
		if err != nil || len(all) == 0 {
			return err
		}
		first, last := db.DispatchRange(all, position, newest, max)
		var batch pgx.Batch
		for _, r := range all {
			from, to := r.EventRange(first, last)
			batch.Queue(insertDeliveries, r.ID, from, to, at.Milli(), r.Types)
		}
		batch.Queue("INSERT INTO webhook_position (id, event_id) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id", last)
		more = last < newest
		return send(ctx, tx, "insert deliveries", &batch)
	})
	return more, err
}

// dispatchBacklog turns the events that a webhook hasn't received yet into deliveries. From
// then on it gets only later ones. The caller has locked the webhook. A dispatcher locks
// no webhook, so the two can't deadlock.
func dispatchBacklog(ctx context.Context, tx pgx.Tx, webhookID int64) error {
	if err := dispatchLock.take(ctx, tx); err != nil {
		return err
	}
	var newest int64 // what others publish from now on is later than this change
	if err := tx.QueryRow(ctx, "SELECT "+newestEvent).Scan(&newest); err != nil {
		return failed("select newest event", err)
	}
	all, position, _, err := receivers(ctx, tx)
	if err != nil {
		return err
	}
	receiver, err := db.BacklogReceiver(all, webhookID, position, newest)
	if err != nil {
		return err
	}
	if receiver != nil {
		from, to := receiver.EventRange(position, newest)
		if _, err := tx.Exec(ctx, insertDeliveries, webhookID, from, to, time.Now().UnixMilli(), receiver.Types); err != nil {
			return failed("insert deliveries", err)
		}
	}
	_, err = tx.Exec(ctx, "UPDATE webhooks SET from_event = $2, to_event = 0 WHERE id = $1", webhookID, newest)
	return failed("restart webhook", err)
}

// These claim at most $3 deliveries of a webhook ($1) that are due at $2, until $4. They
// skip rows that another session is claiming, finishing or retrying.
const (
	selectDue = `WITH due AS (SELECT id FROM deliveries
			WHERE webhook_id = $1 AND state = 0 AND due_at <= $2 AND leased_until <= $2 `
	claimSelected = ` ORDER BY due_at, id LIMIT $3 FOR UPDATE SKIP LOCKED),
		claimed AS (UPDATE deliveries d SET leased_until = $4 FROM due WHERE d.id = due.id
			RETURNING d.id, d.webhook_id, d.event_id, d.type, d.event_time, d.data, d.tries, d.retries, d.due_at)
		SELECT c.id, c.webhook_id, c.event_id, c.type, c.event_time, c.data, c.tries, c.retries, w.url, w.secret,
			CASE WHEN w.old_secret_until > $2 THEN w.old_secret ELSE '' END
		FROM claimed c JOIN webhooks w ON w.id = c.webhook_id ORDER BY c.due_at, c.id`
	claimDue   = selectDue + claimSelected
	claimPings = selectDue + "AND event_id = 0 " + claimSelected
)

// claimFor claims deliveries of a webhook until db.MaxInFlight are claimed. It
// claims none if another session has locked the webhook.
func claimFor(ctx context.Context, tx pgx.Tx, webhookID int64, now, lease animalstore.Time) ([]db.ClaimedDelivery, error) {
	webhook, err := selectOne(ctx, tx, "lock webhook", db.ScanWebhook, selectWebhook+" FOR NO KEY UPDATE SKIP LOCKED", webhookID)
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	claimed, err := selectOne(ctx, tx, "count claims", db.ScanValue[int],
		"SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND leased_until <> 0 AND leased_until > $2", webhookID, now.Milli())
	if err != nil || claimed >= db.MaxInFlight {
		return nil, err
	}
	query := claimDue
	if webhook.State != animalstore.WebhookActive {
		query = claimPings
	}
	return selectAll(ctx, tx, "claim deliveries", db.ScanClaimed(lease), query, webhookID, now.Milli(),
		db.MaxInFlight-claimed, lease.Milli())
}

// webhooksWithDue finds the webhooks that have a delivery that is due.
const webhooksWithDue = `SELECT id FROM webhooks WHERE
	(state = 0 AND EXISTS (SELECT FROM deliveries WHERE webhook_id = webhooks.id
			AND deliveries.state = 0 AND due_at <= $1 AND leased_until <= $1)
		OR state <> 0 AND EXISTS (SELECT FROM deliveries WHERE webhook_id = webhooks.id
			AND deliveries.state = 0 AND event_id = 0 AND due_at <= $1 AND leased_until <= $1))
	AND (SELECT count(*) FROM deliveries WHERE webhook_id = webhooks.id AND leased_until <> 0 AND leased_until > $1) < $2`

// selectWork reads each next time from the first matching entry of an index.
const selectWork = `SELECT coalesce(bool_or(at.position < at.newest AND w.from_event < at.newest AND (w.state = 0 OR w.to_event > at.position)), false),
		EXISTS (` + webhooksWithDue + `),
		coalesce(min(least(
			CASE WHEN w.state = 0
				THEN (SELECT min(due_at) FROM deliveries WHERE webhook_id = w.id AND state = 0 AND due_at > $1)
				ELSE (SELECT min(due_at) FROM deliveries WHERE webhook_id = w.id AND state = 0 AND event_id = 0 AND due_at > $1) END,
			(SELECT min(leased_until) FROM deliveries WHERE webhook_id = w.id AND leased_until <> 0 AND leased_until > $1))), 0),
		clock_timestamp()
	FROM webhooks w CROSS JOIN (SELECT ` + newestEvent + ` AS newest,
		coalesce((SELECT event_id FROM webhook_position WHERE id = 1), 0) AS position) AS at`

// WebhookWork implements [db.DB].
func (d *DB) WebhookWork(ctx context.Context, now animalstore.Time) (work db.WebhookWork, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var next int64
		var clock time.Time
		err := c.QueryRow(ctx, selectWork, now.Milli(), db.MaxInFlight).Scan(&work.Events, &work.Due, &next, &clock)
		work.Next, work.Clock = animalstore.AtMilli(next), animalstore.At(clock)
		return failed("look for deliveries", err)
	})
	return work, err
}

// ClaimDeliveries implements [db.DB]. It locks each webhook in a separate transaction, so
// that two sessions together don't claim more than MaxInFlight.
func (d *DB) ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) (claimed []db.ClaimedDelivery, err error) {
	ids, err := list(ctx, d, "look for due deliveries", db.ScanValue[int64], webhooksWithDue, now.Milli(), db.MaxInFlight)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var some []db.ClaimedDelivery
		err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			some, err = claimFor(ctx, tx, id, now, lease)
			return err
		})
		if err != nil {
			return claimed, err
		}
		claimed = append(claimed, some...)
	}
	return claimed, nil
}

// ReleaseDelivery implements [db.DB].
func (d *DB) ReleaseDelivery(ctx context.Context, due db.ClaimedDelivery) error {
	return d.writeStatement(ctx, "release delivery", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE deliveries SET leased_until = 0 WHERE id = $1 AND leased_until = $2",
			due.ID, due.Lease.Milli())
		return err
	})
}
