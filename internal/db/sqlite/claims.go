package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// claims are the deliveries that were claimed and not finished since. They are kept in
// memory: only a server claims, and it locks the file, so nobody else has to know, and the
// claims of a server end with it. The column leased_until isn't used.
//
// mu is held from before deliveries are read until they are claimed, and a claim ends only
// after its result was committed. So nobody claims what an older state shows as due.
type claims struct {
	mu sync.Mutex
	of map[int64]map[int64]claim // by webhook, then by delivery
}

type claim struct {
	until    int64  // milliseconds
	attempts string // so far, as stored
}

// count returns how many deliveries of a webhook are claimed beyond now, and when the
// first of these claims ends.
func (cs *claims) count(webhookID int64, now animalstore.Time) (n int, first int64) {
	for _, one := range cs.of[webhookID] {
		if one.until > now.Milli() {
			n++
			first = earlier(first, one.until)
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

// holds reports whether nobody has claimed a delivery since the given claim.
func (cs *claims) holds(due *animalstore.DueDelivery) (claim, bool) {
	one, found := cs.of[due.WebhookID][due.ID]
	return one, found && one.until == due.Lease.Milli()
}

func (cs *claims) end(due *animalstore.DueDelivery) {
	if _, ours := cs.holds(due); ours {
		delete(cs.of[due.WebhookID], due.ID)
		if len(cs.of[due.WebhookID]) == 0 {
			delete(cs.of, due.WebhookID)
		}
	}
}

// whereDue selects the deliveries of a webhook (?1) that are due (?2). Of a webhook that
// isn't active, only pings are.
func whereDue(state int64) string {
	const due = "webhook_id = ?1 AND state = 0 AND due_at <= ?2"
	if state != 0 {
		return due + " AND event_id = 0"
	}
	return due
}

const dueColumns = "SELECT id, event_id, type, event_time, data, tries, attempts FROM deliveries "

// scanDue completes what all deliveries of a webhook have in common.
func scanDue(stmt *sqlite.Stmt, due animalstore.DueDelivery) animalstore.DueDelivery {
	due.ID = stmt.ColumnInt64(0)
	due.EventID = stmt.ColumnInt64(1)
	due.Type = db.DeliveryType(stmt.ColumnInt64(2))
	due.Time = animalstore.AtMilli(stmt.ColumnInt64(3))
	due.Data = json.RawMessage(stmt.ColumnText(4))
	due.Tries = int(stmt.ColumnInt64(5))
	return due
}

// selectTarget returns a webhook's state and what all its deliveries have in common.
func selectTarget(c *sqlite.Conn, id int64, now, lease animalstore.Time) (state int64, common animalstore.DueDelivery, err error) {
	common = animalstore.DueDelivery{WebhookID: id, Lease: lease}
	found := false
	err = sqlitex.Execute(c, "SELECT state, url, secret, CASE WHEN old_secret_until > ?2 THEN old_secret ELSE '' END FROM webhooks WHERE id = ?1", &sqlitex.ExecOptions{
		Args: []any{id, now.Milli()},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			found = true
			state, common.URL, common.Secrets = stmt.ColumnInt64(0), stmt.ColumnText(1), []string{stmt.ColumnText(2)}
			if old := stmt.ColumnText(3); old != "" {
				common.Secrets = append(common.Secrets, old)
			}
			return nil
		},
	})
	switch {
	case err != nil:
		return state, common, fmt.Errorf("select webhook: %w", err)
	case !found:
		return state, common, db.ErrNotFound
	}
	return state, common, nil
}

// claim claims at most n deliveries of a webhook. The caller holds mu.
func (cs *claims) claim(c *sqlite.Conn, webhookID int64, now, lease animalstore.Time, n int) (claimed []animalstore.DueDelivery, err error) {
	state, common, err := selectTarget(c, webhookID, now, lease)
	if err != nil {
		return nil, ignoreNotFound(err) // it was deleted
	}
	of := cs.of[webhookID]
	err = sqlitex.Execute(c, dueColumns+"WHERE "+whereDue(state)+" ORDER BY due_at LIMIT +?3", &sqlitex.ExecOptions{
		Args: []any{webhookID, now.Milli(), n + len(of)},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			id := stmt.ColumnInt64(0)
			if len(claimed) == n || of[id].until > now.Milli() {
				return nil
			}
			if of == nil {
				of = map[int64]claim{}
				cs.of[webhookID] = of
			}
			of[id] = claim{until: lease.Milli(), attempts: stmt.ColumnText(6)}
			claimed = append(claimed, scanDue(stmt, common))
			return nil
		},
	})
	if err != nil {
		return claimed, fmt.Errorf("select due deliveries: %w", err)
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

// due reports whether a delivery of a webhook may be claimed.
func (cs *claims) due(c *sqlite.Conn, w webhookState, now animalstore.Time) (due bool, err error) {
	if n, _ := cs.count(w.id, now); n >= animalstore.MaxInFlight {
		return false, nil
	}
	err = sqlitex.Execute(c, "SELECT id FROM deliveries WHERE "+whereDue(w.state)+" ORDER BY due_at LIMIT +?3", &sqlitex.ExecOptions{
		Args: []any{w.id, now.Milli(), 1 + len(cs.of[w.id])},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			due = due || cs.of[w.id][stmt.ColumnInt64(0)].until <= now.Milli()
			return nil
		},
	})
	if err != nil {
		return false, fmt.Errorf("look for due deliveries: %w", err)
	}
	return due, nil
}

// The earliest time after ?2 at which a delivery of a webhook (?1) becomes due. It is found
// at the beginning of a part of an index.
const (
	nextDue  = "SELECT due_at FROM deliveries WHERE webhook_id = ?1 AND state = 0 AND due_at > ?2 ORDER BY due_at LIMIT 1"
	nextPing = "SELECT due_at FROM deliveries WHERE webhook_id = ?1 AND state = 0 AND event_id = 0 AND due_at > ?2 ORDER BY due_at LIMIT 1"
)

// WebhookWork implements [db.DB].
func (d *DB) WebhookWork(ctx context.Context, now animalstore.Time) (work animalstore.WebhookWork, err error) {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
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
		work = animalstore.WebhookWork{Webhooks: true, Events: len(getting) > 0 && position < newest}
		next := int64(0)
		for _, w := range all {
			due, err := d.claims.due(c, w, now)
			if err != nil {
				return err
			}
			query := nextDue
			if w.state != 0 {
				query = nextPing
			}
			later, err := selectInt(c, "look for the next delivery", query, w.id, now.Milli())
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
func (d *DB) ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) (claimed []animalstore.DueDelivery, err error) {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	err = d.read(ctx, func(c *sqlite.Conn) error {
		all, err := webhookStates(c)
		for _, w := range all {
			n, _ := d.claims.count(w.id, now)
			if err != nil || n >= animalstore.MaxInFlight {
				continue
			}
			var some []animalstore.DueDelivery
			some, err = d.claims.claim(c, w.id, now, lease, animalstore.MaxInFlight-n)
			claimed = append(claimed, some...)
		}
		return err
	})
	return claimed, err
}

// ReleaseDeliveries implements [db.DB].
func (d *DB) ReleaseDeliveries(_ context.Context, due []animalstore.DueDelivery) error {
	d.claims.mu.Lock()
	defer d.claims.mu.Unlock()
	for i := range due {
		d.claims.end(&due[i])
	}
	return nil
}
