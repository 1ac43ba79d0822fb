package sqlite

import (
	"context"
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

// webhookState is whether a webhook is active.
type webhookState struct{ id, state int64 }

func scanState(r db.Row) (w webhookState, err error) {
	err = r.Scan(&w.id, &w.state)
	return w, err
}

// pending selects the pending deliveries of the webhook (?1). Those of
// an inactive webhook stay pending, except for pings.
func (w webhookState) pending() string {
	if db.FromStored(animalstore.WebhookStates, w.state) == animalstore.WebhookActive {
		return "webhook_id = ?1 AND deliveries.state = 0"
	}
	return "webhook_id = ?1 AND deliveries.state = 0 AND event_id = 0"
}

// claim claims at most n deliveries of a webhook. The caller holds mu.
func (cs *claims) claim(c *sqlite.Conn, w webhookState, now, lease animalstore.Time, n int) (claimed []db.ClaimedDelivery, err error) {
	of := cs.of[w.id]
	scan := db.ScanClaimed(lease)
	err = selectEach(c, "select due deliveries", func(r row) error {
		id := r.ColumnInt64(0)
		if len(claimed) == n || of[id] > now.Milli() {
			return nil
		}
		due, err := scan(r)
		if err != nil {
			return err
		}
		if of == nil {
			of = map[int64]int64{}
			cs.of[w.id] = of
		}
		of[id] = lease.Milli()
		claimed = append(claimed, due)
		return nil
	}, `SELECT deliveries.id, webhook_id, event_id, type, event_time, data, tries, retries, url, secret,
			CASE WHEN old_secret_until > ?2 THEN old_secret ELSE '' END
		FROM deliveries JOIN webhooks ON webhooks.id = webhook_id WHERE `+w.pending()+` AND due_at <= ?2 ORDER BY due_at LIMIT +?3`,
		w.id, now.Milli(), n+len(of))
	return claimed, err
}

// due reports whether a delivery of a webhook may be claimed.
func (cs *claims) due(c *sqlite.Conn, w webhookState, now animalstore.Time) (due bool, err error) {
	if n, _ := cs.count(w.id, now); n >= db.MaxInFlight {
		return false, nil
	}
	err = selectEach(c, "look for due deliveries", func(r row) error {
		due = due || cs.of[w.id][r.ColumnInt64(0)] <= now.Milli()
		return nil
	}, "SELECT id FROM deliveries WHERE "+w.pending()+" AND due_at <= ?2 ORDER BY due_at LIMIT +?3", w.id, now.Milli(), 1+len(cs.of[w.id]))
	return due, err
}

// nextDue returns the earliest time after now at which a delivery of a webhook becomes
// due, or 0. It reads one entry of an index.
func nextDue(c *sqlite.Conn, w webhookState, now animalstore.Time) (int64, error) {
	return selectInt(c, "look for the next delivery",
		"SELECT due_at FROM deliveries WHERE "+w.pending()+" AND due_at > ?2 ORDER BY due_at LIMIT 1", w.id, now.Milli())
}

// WebhookWork implements [db.DB].
func (d *DB) WebhookWork(ctx context.Context, now animalstore.Time) (work db.WebhookWork, err error) {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	err = d.read(ctx, func(c *sqlite.Conn) error {
		all, err := selectAll(c, "select webhooks", scanState, "SELECT id, state FROM webhooks")
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
		all, err := selectAll(c, "select webhooks", scanState, "SELECT id, state FROM webhooks")
		for _, w := range all {
			n, _ := d.claims.count(w.id, now)
			if err != nil || n >= db.MaxInFlight {
				continue
			}
			var some []db.ClaimedDelivery
			some, err = d.claims.claim(c, w, now, lease, db.MaxInFlight-n)
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
