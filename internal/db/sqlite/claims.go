package sqlite

import (
	"context"
	"encoding/json"
	"sync"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// claims are the deliveries that were claimed and aren't finished. They are kept in
// memory: only the server that has locked the file claims deliveries, so no other process
// has to know, and its claims end with it.
//
// mu is held from before deliveries are read until they are claimed. Unless released or
// expired, a claim lasts until its result is committed. So no delivery is claimed because of
// an outdated read.
type claims struct {
	mu sync.Mutex
	of map[int64]map[int64]int64 // when a claim ends, in milliseconds, by webhook and delivery
}

// count returns how many deliveries of a webhook are claimed beyond now, and when the
// first of these claims ends.
func (cs *claims) count(webhookID int64, now animalstore.Time) (n int, first int64) {
	for _, until := range cs.of[webhookID] {
		if until > now.Milli() {
			n++
			first = earlier(first, until)
		}
	}
	return n, first
}

// earlier returns the earlier of two times, of which 0 means never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// hold reports whether nobody has claimed a delivery since the given claim.
func (cs *claims) hold(due *db.ClaimedDelivery) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.ours(due)
}

// ours is hold for callers that hold mu.
func (cs *claims) ours(due *db.ClaimedDelivery) bool {
	until, found := cs.of[due.WebhookID][due.ID]
	return found && until == due.Lease.Milli()
}

func (cs *claims) end(due *db.ClaimedDelivery) {
	if cs.ours(due) {
		delete(cs.of[due.WebhookID], due.ID)
		if len(cs.of[due.WebhookID]) == 0 {
			delete(cs.of, due.WebhookID)
		}
	}
}

// pending selects the pending deliveries of a webhook (?1). Those of a webhook that isn't
// active stay pending, except for pings.
func pending(state animalstore.WebhookState) string {
	const all = "webhook_id = ?1 AND state = " + db.SQLDeliveryPending
	if state != animalstore.WebhookActive {
		return all + " AND " + db.SQLPing
	}
	return all
}

const dueColumns = "SELECT id, event_id, type, event_time, data, tries, retries FROM deliveries "

// scanDue completes what all deliveries of a webhook have in common.
func scanDue(stmt *sqlite.Stmt, due db.ClaimedDelivery) db.ClaimedDelivery {
	due.ID = stmt.ColumnInt64(0)
	due.EventID = stmt.ColumnInt64(1)
	due.Type = db.DeliveryType(stmt.ColumnInt64(2))
	due.Time = animalstore.AtMilli(stmt.ColumnInt64(3))
	due.Data = json.RawMessage(stmt.ColumnText(4))
	due.Tries = int(stmt.ColumnInt64(5))
	due.Retries = stmt.ColumnInt64(6)
	return due
}

// selectTarget returns a webhook's state and what all its deliveries have in common.
func selectTarget(c *sqlite.Conn, id int64, now, lease animalstore.Time) (state animalstore.WebhookState, common db.ClaimedDelivery, err error) {
	common, err = selectOne(c, "select webhook", func(stmt *sqlite.Stmt) (db.ClaimedDelivery, error) {
		state = db.FromStored(animalstore.WebhookStates, stmt.ColumnInt64(0))
		due := db.ClaimedDelivery{WebhookID: id, Lease: lease, URL: stmt.ColumnText(1), Secrets: []string{stmt.ColumnText(2)}}
		if old := stmt.ColumnText(3); old != "" {
			due.Secrets = append(due.Secrets, old)
		}
		return due, nil
	}, "SELECT state, url, secret, CASE WHEN old_secret_until > ?2 THEN old_secret ELSE '' END FROM webhooks WHERE id = ?1", id, now.Milli())
	return state, common, err
}

// claim claims at most n deliveries of a webhook. The caller holds mu.
func (cs *claims) claim(c *sqlite.Conn, webhookID int64, now, lease animalstore.Time, n int) (claimed []db.ClaimedDelivery, err error) {
	state, common, err := selectTarget(c, webhookID, now, lease)
	if err != nil {
		return nil, ignoreNotFound(err) // it was deleted
	}
	of := cs.of[webhookID]
	err = selectEach(c, "select due deliveries", func(stmt *sqlite.Stmt) error {
		id := stmt.ColumnInt64(0)
		if len(claimed) == n || of[id] > now.Milli() {
			return nil
		}
		if of == nil {
			of = map[int64]int64{}
			cs.of[webhookID] = of
		}
		of[id] = lease.Milli()
		claimed = append(claimed, scanDue(stmt, common))
		return nil
	}, dueColumns+"WHERE "+pending(state)+" AND due_at <= ?2 ORDER BY due_at LIMIT +?3", webhookID, now.Milli(), n+len(of))
	return claimed, err
}

type webhookState struct {
	id    int64
	state animalstore.WebhookState
}

func webhookStates(c *sqlite.Conn) ([]webhookState, error) {
	scan := func(stmt *sqlite.Stmt) (webhookState, error) {
		return webhookState{stmt.ColumnInt64(0), db.FromStored(animalstore.WebhookStates, stmt.ColumnInt64(1))}, nil
	}
	return selectAll(c, "select webhooks", scan, "SELECT id, state FROM webhooks")
}

// due reports whether a delivery of a webhook may be claimed.
func (cs *claims) due(c *sqlite.Conn, w webhookState, now animalstore.Time) (due bool, err error) {
	if n, _ := cs.count(w.id, now); n >= db.MaxInFlight {
		return false, nil
	}
	err = selectEach(c, "look for due deliveries", func(stmt *sqlite.Stmt) error {
		due = due || cs.of[w.id][stmt.ColumnInt64(0)] <= now.Milli()
		return nil
	}, "SELECT id FROM deliveries WHERE "+pending(w.state)+" AND due_at <= ?2 ORDER BY due_at LIMIT +?3", w.id, now.Milli(), 1+len(cs.of[w.id]))
	return due, err
}

// nextDue returns the earliest time after now at which a delivery of a webhook becomes
// due, or 0. It reads one entry of an index.
func nextDue(c *sqlite.Conn, w webhookState, now animalstore.Time) (int64, error) {
	return selectInt(c, "look for the next delivery", "SELECT due_at FROM deliveries WHERE "+pending(w.state)+" AND due_at > ?2 ORDER BY due_at LIMIT 1", w.id, now.Milli())
}

// WebhookWork implements [db.DB].
func (d *DB) WebhookWork(ctx context.Context, now animalstore.Time) (work db.WebhookWork, err error) {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	err = d.read(ctx, func(c *sqlite.Conn) error {
		all, err := webhookStates(c)
		if err != nil || len(all) == 0 {
			return err
		}
		getting, position, newest, err := receivers(c)
		if err != nil {
			return err
		}
		work = db.WebhookWork{Events: len(getting) > 0 && position < newest}
		next := int64(0)
		for _, w := range all {
			due, err := d.claims.due(c, w, now)
			if err != nil {
				return err
			}
			later, err := nextDue(c, w, now)
			if err != nil {
				return err
			}
			_, free := d.claims.count(w.id, now)
			work.Due = work.Due || due
			next = earlier(next, earlier(later, free))
		}
		work.Next = animalstore.AtMilli(next)
		return nil
	})
	return work, err
}

// ClaimDeliveries implements [db.DB].
func (d *DB) ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) (claimed []db.ClaimedDelivery, err error) {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	err = d.read(ctx, func(c *sqlite.Conn) error {
		all, err := webhookStates(c)
		for _, w := range all {
			n, _ := d.claims.count(w.id, now)
			if err != nil || n >= db.MaxInFlight {
				continue
			}
			var some []db.ClaimedDelivery
			some, err = d.claims.claim(c, w.id, now, lease, db.MaxInFlight-n)
			claimed = append(claimed, some...)
		}
		return err
	})
	return claimed, err
}

// ReleaseDelivery implements [db.DB].
func (d *DB) ReleaseDelivery(_ context.Context, due db.ClaimedDelivery) error {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	d.claims.end(&due)
	return nil
}
