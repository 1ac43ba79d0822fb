package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

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

// ReleaseAbandoned implements [db.DB]. Only a server claims, and it locks the file, so
// every claim that another one made is abandoned.
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
