package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const selectWebhook = "SELECT " + db.WebhookColumns + " FROM webhooks WHERE id = $1"

// CreateWebhook implements [db.DB].
func (d *DB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (animalstore.Webhook, error) {
	if err := d.publishQueued(ctx); err != nil {
		return animalstore.Webhook{}, err
	}
	var webhook animalstore.Webhook
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := webhooksLock.take(ctx, tx); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM webhooks").Scan(&count); err != nil {
			return failed("count webhooks", err)
		}
		if count >= animalstore.MaxWebhooks {
			return db.ErrTooManyWebhooks
		}
		webhook, err = db.ScanWebhook(tx.QueryRow(ctx, `INSERT INTO webhooks (url, types, description, state, disabled_reason, secret, old_secret, old_secret_until,
			created_at, delivered_at, failed_at, failing_since, from_event, to_event)
			VALUES ($1, $2, $3, 0, '', $4, '', 0, $5, 0, 0, 0, `+newestEvent+`, 0) RETURNING `+db.WebhookColumns,
			w.URL, string(w.Types), w.Description, secret, at.Milli()))
		if err != nil {
			return failed("insert webhook", err)
		}
		var batch pgx.Batch
		queueEvent(ctx, &batch, animalstore.WebhookCreated, webhook.ID, db.EventData(&webhook))
		return send(ctx, tx, "insert event", &batch)
	})
	return webhook, err
}

// Webhook implements [db.DB].
func (d *DB) Webhook(ctx context.Context, id int64) (animalstore.Webhook, error) {
	return readOne(ctx, d, "select webhook", db.ScanWebhook, selectWebhook, id)
}

// Webhooks implements [db.DB].
func (d *DB) Webhooks(ctx context.Context, page db.Page) ([]animalstore.Webhook, error) {
	return list(ctx, d, "select webhooks", db.ScanWebhook,
		"SELECT "+db.WebhookColumns+" FROM webhooks WHERE id < $1 ORDER BY id DESC LIMIT $2", db.UpperBound(page.After), page.Limit)
}

// UpdateWebhook implements [db.DB].
func (d *DB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err := d.publishQueued(ctx); err != nil {
		return webhook, err
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockOne(ctx, tx, "lock webhook", db.ScanWebhook, selectWebhook, id)
		if err != nil {
			return err
		}
		webhook = before
		if err := change(&webhook); err != nil {
			return err
		}
		return storeWebhook(ctx, tx, before, webhook)
	})
	return webhook, err
}

// storeWebhook stores what was changed about a webhook, with its event.
func storeWebhook(ctx context.Context, tx pgx.Tx, before, after animalstore.Webhook) error {
	update, changed := db.CompareWebhooks(before, after)
	if !changed {
		return nil
	}
	if update.DispatchBacklog {
		if err := dispatchBacklog(ctx, tx, before.ID); err != nil {
			return err
		}
	}
	activation := ""
	switch {
	case update.Activated:
		activation = ", failing_since = 0"
	case update.Deactivated:
		activation = ", to_event = " + newestEvent
	}
	var batch pgx.Batch
	batch.Queue("UPDATE webhooks SET url = $2, types = $3, description = $4, state = $5, disabled_reason = $6"+activation+" WHERE id = $1",
		after.ID, after.URL, string(after.Types), after.Description, db.StoredIndex(animalstore.WebhookStates, after.State), string(after.DisabledReason))
	queueEvent(ctx, &batch, update.Event, after.ID, db.EventData(&after))
	return send(ctx, tx, "update webhook", &batch)
}

// DeleteWebhook implements [db.DB].
func (d *DB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) error {
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		webhook, err := lockOne(ctx, tx, "lock webhook", db.ScanWebhook, selectWebhook, id)
		if err != nil {
			return err
		}
		if err := check(&webhook); err != nil {
			return err
		}
		var batch pgx.Batch
		batch.Queue("DELETE FROM webhooks WHERE id = $1", id)
		queueEvent(ctx, &batch, animalstore.WebhookDeleted, id, db.EventData(&webhook))
		return send(ctx, tx, "delete webhook", &batch)
	})
}

// RotateWebhook implements [db.DB].
func (d *DB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if webhook, err = lockOne(ctx, tx, "lock webhook", db.ScanWebhook, selectWebhook, id); err != nil {
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
	type row struct{ state, oldestDue, pending int64 }
	scan := func(from db.Row) (r row, err error) {
		err = from.Scan(&r.state, &r.oldestDue, &r.pending)
		return r, err
	}
	rows, err := list(ctx, d, "select statistics of webhooks", scan, `SELECT state, coalesce((SELECT min(due_at) FROM deliveries
		WHERE webhook_id = webhooks.id AND deliveries.state = 0), 0), (SELECT count(*) FROM (SELECT 1 FROM deliveries
		WHERE webhook_id = webhooks.id AND deliveries.state = 0 LIMIT $1) AS counted) FROM webhooks`, db.MaxCounted)
	for _, r := range rows {
		stats.Add(r.state, r.oldestDue, r.pending, now)
	}
	return stats, err
}
