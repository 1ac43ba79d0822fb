package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const webhookColumns = "id, url, types, description, state, disabled_reason, created_at, delivered_at, failed_at"

const selectWebhook = "SELECT " + webhookColumns + " FROM webhooks WHERE id = $1"

func scanWebhook(row pgx.Row) (animalstore.Webhook, error) {
	var w animalstore.Webhook
	var types, reason string
	var state int16
	var created, delivered, failedAt int64
	if err := row.Scan(&w.ID, &w.URL, &types, &w.Description, &state, &reason, &created, &delivered, &failedAt); err != nil {
		return animalstore.Webhook{}, err
	}
	w.Types, w.State, w.DisabledReason = animalstore.EventPatterns(types), animalstore.WebhookStates[state], animalstore.Reason(reason)
	w.CreatedAt, w.LastDeliveredAt, w.LastFailedAt = animalstore.AtMilli(created), animalstore.AtMilli(delivered), animalstore.AtMilli(failedAt)
	return w, nil
}

// queueEvent adds an event of a webhook to the queue.
func queueEvent(ctx context.Context, tx pgx.Tx, by db.Actor, t animalstore.EventType, w *animalstore.Webhook) error {
	_, err := tx.Exec(ctx, addEvents+"VALUES ($1, $2, $4, $5, $6, $3)", eventArgs(by, db.EventTypeIndex(t), w.ID, db.EventData(w))...)
	return failed("insert event", err)
}

// CreateWebhook implements [db.DB]. The lock on the table lets one caller through at a
// time, so that they don't create too many together.
func (d *DB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (animalstore.Webhook, error) {
	if err := d.publishQueued(ctx); err != nil {
		return animalstore.Webhook{}, err
	}
	var webhook animalstore.Webhook
	by := db.ActorOf(ctx)
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, "LOCK TABLE webhooks IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return failed("lock webhooks", err)
		}
		var count int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM webhooks").Scan(&count); err != nil {
			return failed("count webhooks", err)
		}
		if count >= animalstore.MaxWebhooks {
			return db.ErrTooManyWebhooks
		}
		webhook, err = scanWebhook(tx.QueryRow(ctx, `INSERT INTO webhooks (url, types, description, state, disabled_reason, secret, old_secret, old_secret_until,
			created_at, delivered_at, failed_at, failing_since, from_event, to_event)
			VALUES ($1, $2, $3, 0, '', $4, '', 0, $5, 0, 0, 0, `+newestEvent+`, 0) RETURNING `+webhookColumns,
			w.URL, string(w.Types), w.Description, secret, at.Milli()))
		if err != nil {
			return failed("insert webhook", err)
		}
		return queueEvent(ctx, tx, by, animalstore.WebhookCreated, &webhook)
	})
	return webhook, err
}

const newestEvent = "(SELECT coalesce(max(id), 0) FROM events)"

// Webhook implements [db.DB].
func (d *DB) Webhook(ctx context.Context, id int64) (animalstore.Webhook, error) {
	return readOne(ctx, d, "select webhook", scanWebhook, selectWebhook, id)
}

// Webhooks implements [db.DB].
func (d *DB) Webhooks(ctx context.Context, q db.WebhookQuery) ([]animalstore.Webhook, error) {
	return list(ctx, d, "select webhooks", q.Limit, scanWebhook, "SELECT "+webhookColumns+" FROM webhooks WHERE id < $1 ORDER BY id DESC LIMIT $2", upperBound(q.Before), q.Limit)
}

// UpdateWebhook implements [db.DB].
func (d *DB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err := d.publishQueued(ctx); err != nil {
		return webhook, err
	}
	by := db.ActorOf(ctx)
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockOne(ctx, tx, "lock webhook", scanWebhook, selectWebhook, id)
		if err != nil {
			return err
		}
		webhook = before
		if err := change(&webhook); err != nil {
			return err
		}
		return storeWebhook(ctx, tx, by, before, webhook)
	})
	return webhook, err
}

// storeWebhook stores what was changed about a webhook, with its event.
func storeWebhook(ctx context.Context, tx pgx.Tx, by db.Actor, before, after animalstore.Webhook) error {
	if before.Settings() == after.Settings() {
		return nil
	}
	if db.Restarts(before, after) {
		if err := dispatchRest(ctx, tx, before.ID); err != nil {
			return err
		}
	}
	activation := ""
	switch was, is := before.State == animalstore.WebhookActive, after.State == animalstore.WebhookActive; {
	case is && !was:
		activation = ", failing_since = 0"
	case was && !is:
		activation = ", to_event = " + newestEvent
	}
	_, err := tx.Exec(ctx, "UPDATE webhooks SET url = $2, types = $3, description = $4, state = $5, disabled_reason = $6"+activation+" WHERE id = $1",
		after.ID, after.URL, string(after.Types), after.Description, statusIndex(animalstore.WebhookStates, after.State), string(after.DisabledReason))
	if err != nil {
		return failed("update webhook", err)
	}
	return queueEvent(ctx, tx, by, db.WebhookChange(after), &after)
}

// DeleteWebhook implements [db.DB].
func (d *DB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) error {
	by := db.ActorOf(ctx)
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		webhook, err := lockOne(ctx, tx, "lock webhook", scanWebhook, selectWebhook, id)
		if err != nil {
			return err
		}
		if err := check(&webhook); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM webhooks WHERE id = $1", id); err != nil {
			return failed("delete webhook", err)
		}
		return queueEvent(ctx, tx, by, animalstore.WebhookDeleted, &webhook)
	})
}

// RotateWebhook implements [db.DB].
func (d *DB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if webhook, err = lockOne(ctx, tx, "lock webhook", scanWebhook, selectWebhook, id); err != nil {
			return err
		}
		if err := check(&webhook); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE webhooks SET old_secret = secret, old_secret_until = $2, secret = $3 WHERE id = $1", id, until.Milli(), secret)
		return failed("rotate secret", err)
	})
	return webhook, err
}

// PauseWebhooks implements [db.DB].
func (d *DB) PauseWebhooks(ctx context.Context) (paused int, err error) {
	if err := d.publishQueued(ctx); err != nil {
		return 0, err
	}
	err = d.writeStatement(ctx, "pause webhooks", func(ctx context.Context, c *pgx.Conn) error {
		tag, err := c.Exec(ctx, "UPDATE webhooks SET state = 1, to_event = "+newestEvent+" WHERE state = 0")
		paused = int(tag.RowsAffected())
		return err
	})
	return paused, err
}

// WebhookStats implements [db.DB].
func (d *DB) WebhookStats(ctx context.Context, now animalstore.Time) (stats db.WebhookStats, err error) {
	err = d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		stats = db.WebhookStats{}
		rows, err := c.Query(ctx, `SELECT state::bigint, coalesce((SELECT min(due_at) FROM deliveries WHERE webhook_id = webhooks.id AND deliveries.state = 0), 0) FROM webhooks`)
		if err != nil {
			return failed("select statistics of webhooks", err)
		}
		defer rows.Close()
		for rows.Next() {
			var state, oldest int64
			if err := rows.Scan(&state, &oldest); err != nil {
				return failed("select statistics of webhooks", err)
			}
			stats.Add(state, oldest, now)
		}
		return failed("select statistics of webhooks", rows.Err())
	})
	return stats, err
}
