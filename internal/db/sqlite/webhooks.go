package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

const selectWebhookByID = "SELECT " + db.WebhookColumns + " FROM webhooks WHERE id = ?"

func selectWebhook(c *sqlite.Conn, id int64) (animalstore.Webhook, error) {
	return selectOne(c, "select webhook", db.ScanWebhook, selectWebhookByID, id)
}

// CreateWebhook implements [db.DB].
func (d *DB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (animalstore.Webhook, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (webhook animalstore.Webhook, err error) {
		count, err := selectInt(c, "count webhooks", "SELECT count(*) FROM webhooks")
		if err != nil {
			return webhook, err
		}
		if count >= animalstore.MaxWebhooks {
			return webhook, db.ErrTooManyWebhooks
		}
		_, newest, err := eventRange(c)
		if err != nil {
			return webhook, err
		}
		err = execute(c, "insert webhook", `INSERT INTO webhooks (url, types, description, state, disabled_reason, secret, old_secret, old_secret_until,
			created_at, delivered_at, failed_at, failing_since, from_event, to_event) VALUES (?, ?, ?, 0, '', ?, '', 0, ?, 0, 0, 0, ?, 0)`,
			w.URL, string(w.Types), w.Description, secret, at.Milli(), newest)
		if err != nil {
			return webhook, err
		}
		if webhook, err = selectWebhook(c, c.LastInsertRowID()); err != nil {
			return webhook, err
		}
		return webhook, insertEvent(c, by, animalstore.WebhookCreated, webhook.ID, db.EventData(&webhook))
	})
}

// Webhook implements [db.DB].
func (d *DB) Webhook(ctx context.Context, id int64) (animalstore.Webhook, error) {
	return readOne(ctx, d, "select webhook", db.ScanWebhook, selectWebhookByID, id)
}

// Webhooks implements [db.DB].
func (d *DB) Webhooks(ctx context.Context, page db.Page) ([]animalstore.Webhook, error) {
	return list(ctx, d, "select webhooks", db.ScanWebhook,
		"SELECT "+db.WebhookColumns+" FROM webhooks WHERE id < ? ORDER BY id DESC LIMIT +?", db.UpperBound(page.After), page.Limit)
}

// UpdateWebhook implements [db.DB].
func (d *DB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (animalstore.Webhook, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (webhook animalstore.Webhook, err error) {
		before, err := selectWebhook(c, id)
		if err != nil {
			return webhook, err
		}
		webhook = before
		if err := change(&webhook); err != nil {
			return webhook, err
		}
		return webhook, storeWebhook(c, by, before, webhook)
	})
}

// storeWebhook stores what was changed about a webhook, with its event.
func storeWebhook(c *sqlite.Conn, by db.Origin, before, after animalstore.Webhook) error {
	update, changed := db.CompareWebhooks(before, after)
	if !changed {
		return nil
	}
	if update.DispatchBacklog {
		if err := dispatchBacklog(c, before.ID); err != nil {
			return err
		}
	}
	err := execute(c, "update webhook", "UPDATE webhooks SET url = ?, types = ?, description = ?, state = ?, disabled_reason = ? WHERE id = ?",
		after.URL, string(after.Types), after.Description, db.StoredIndex(animalstore.WebhookStates, after.State), string(after.DisabledReason), after.ID)
	if err != nil {
		return err
	}
	switch {
	case update.Activated:
		err = execute(c, "activate webhook", "UPDATE webhooks SET failing_since = 0 WHERE id = ?", after.ID)
	case update.Deactivated:
		err = execute(c, "deactivate webhook", "UPDATE webhooks SET to_event = (SELECT coalesce(max(id), 0) FROM events) WHERE id = ?", after.ID)
	}
	if err != nil {
		return err
	}
	return insertEvent(c, by, update.Event, after.ID, db.EventData(&after))
}

// DeleteWebhook implements [db.DB].
func (d *DB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) error {
	by := db.OriginOf(ctx)
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		webhook, err := selectWebhook(c, id)
		if err != nil {
			return err
		}
		if err := check(&webhook); err != nil {
			return err
		}
		if err := execute(c, "delete webhook", "DELETE FROM webhooks WHERE id = ?", id); err != nil {
			return err
		}
		return insertEvent(c, by, animalstore.WebhookDeleted, id, db.EventData(&webhook))
	})
}

// RotateWebhook implements [db.DB].
func (d *DB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (animalstore.Webhook, error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (webhook animalstore.Webhook, err error) {
		if webhook, err = selectWebhook(c, id); err != nil {
			return webhook, err
		}
		if err := check(&webhook); err != nil {
			return webhook, err
		}
		return webhook, execute(c, "rotate secret", "UPDATE webhooks SET old_secret = secret, old_secret_until = ?, secret = ? WHERE id = ?", until.Milli(), secret, id)
	})
}

// PauseWebhooks implements [db.DB].
func (d *DB) PauseWebhooks(ctx context.Context) (paused int, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (paused int, err error) {
		_, newest, err := eventRange(c)
		if err != nil {
			return 0, err
		}
		err = execute(c, "pause webhooks", "UPDATE webhooks SET state = 1, to_event = ? WHERE state = 0", newest)
		return c.Changes(), err
	})
}

// WebhookStats implements [db.DB].
func (d *DB) WebhookStats(ctx context.Context, now animalstore.Time) (stats db.WebhookStats, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) error {
		stats = db.WebhookStats{}
		return selectEach(c, "select statistics of webhooks", func(r row) error {
			stats.Add(r.ColumnInt64(0), r.ColumnInt64(1), r.ColumnInt64(2), now)
			return nil
		}, `SELECT state, coalesce((SELECT min(due_at) FROM deliveries WHERE webhook_id = webhooks.id AND deliveries.state = 0), 0),
			(SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE webhook_id = webhooks.id AND deliveries.state = 0 LIMIT ?1)) FROM webhooks`, db.MaxCounted)
	})
	return stats, err
}
