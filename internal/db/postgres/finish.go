package postgres

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// finishCall is a call of FinishDelivery.
type finishCall struct {
	result     db.DeliveryResult
	now, lease animalstore.Time
}

type finishOutcome struct {
	next     *db.ClaimedDelivery
	disabled animalstore.OptionalText
	err      error
}

// FinishDelivery implements [db.DB]. Every result locks its webhook, so those of one
// webhook that arrive during a transaction share the next one. With a transaction for each,
// a quick receiver would get a third as many deliveries.
func (d *DB) FinishDelivery(ctx context.Context, r db.DeliveryResult, now, lease animalstore.Time) (next *db.ClaimedDelivery, disabled animalstore.OptionalText, err error) {
	outcome, err := d.finishesOf(r.Delivery.WebhookID).do(ctx, finishCall{r, now, lease})
	if err != nil {
		return nil, "", err
	}
	return outcome.next, outcome.disabled, outcome.err
}

func (d *DB) finishesOf(webhookID int64) *batcher[finishCall, finishOutcome] {
	run := func(ctx context.Context, calls []finishCall) ([]finishOutcome, error) {
		return d.finishDeliveries(ctx, webhookID, calls)
	}
	b, ok := d.finishes.Load(webhookID)
	if !ok { // a call can wait for one batch before its own
		b, _ = d.finishes.LoadOrStore(webhookID, &batcher[finishCall, finishOutcome]{run: run, timeout: 2 * d.timeout, alone: true})
	}
	return b.(*batcher[finishCall, finishOutcome])
}

// finishDeliveries stores results of deliveries to one webhook.
func (d *DB) finishDeliveries(ctx context.Context, webhookID int64, calls []finishCall) (outcomes []finishOutcome, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		f, err := lockFinished(ctx, tx, webhookID, calls)
		if err != nil {
			return err
		}
		var waiting []int // for another delivery
		var now, lease animalstore.Time
		for i, c := range calls {
			if f.add(&c.result, &f.outcomes[i]) && !c.lease.IsZero() {
				waiting, now, lease = append(waiting, i), c.now, c.lease
			}
		}
		claimed, err := f.store(ctx, tx, len(waiting), now, lease)
		for i := range claimed {
			f.outcomes[waiting[i]].next = &claimed[i]
		}
		outcomes = f.outcomes
		return err
	})
	return outcomes, err
}

// finished is what results change, first as it was before.
type finished struct {
	webhook  animalstore.Webhook
	found    bool // else it was deleted
	health   db.WebhookHealth
	claims   map[int64]claim // by delivery; without those that have a result
	outcomes []finishOutcome

	changed  bool // health
	disabled animalstore.OptionalText
	stored   storedResults
}

// claim is a delivery as it was before its result.
type claim struct {
	lease    int64
	attempts string
}

// storedResults are the columns of deliveries after their attempts.
type storedResults struct {
	ids, states, tries, dueAt, retries []int64
	attempts                           []string
}

// lockFinished locks a webhook and then deliveries to it, as all others that lock both do.
func lockFinished(ctx context.Context, tx pgx.Tx, webhookID int64, calls []finishCall) (f finished, err error) {
	ids := make([]int64, len(calls))
	for i, c := range calls {
		ids[i] = c.result.Delivery.ID
	}
	f = finished{claims: make(map[int64]claim, len(calls)), outcomes: make([]finishOutcome, len(calls))}
	var batch pgx.Batch
	batch.Queue(selectWebhook+" FOR NO KEY UPDATE", webhookID).QueryRow(func(row pgx.Row) (err error) {
		f.webhook, err = db.ScanWebhook(row)
		f.found = err == nil
		return ignoreNoRows(err)
	})
	batch.Queue("SELECT failing_since FROM webhooks WHERE id = $1", webhookID).QueryRow(func(row pgx.Row) error {
		return ignoreNoRows(row.Scan(&f.health.FailingSince))
	})
	batch.Queue("SELECT id, leased_until, attempts FROM deliveries WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", ids).Query(func(rows pgx.Rows) error {
		var id, lease int64
		var attempts string
		_, err := pgx.ForEachRow(rows, []any{&id, &lease, &attempts}, func() error {
			f.claims[id] = claim{lease, attempts}
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return f, failed("lock deliveries", err)
	}
	f.health.DeliveredAt, f.health.FailedAt = f.webhook.LastDeliveredAt.Milli(), f.webhook.LastFailedAt.Milli()
	return f, nil
}

// add adds a result, and reports whether it counts.
func (f *finished) add(r *db.DeliveryResult, outcome *finishOutcome) bool {
	before, ok := f.claims[r.Delivery.ID]
	if !ok || before.lease != r.Delivery.Lease.Milli() {
		return false
	}
	delete(f.claims, r.Delivery.ID)
	attempts, err := db.AddAttempt(before.attempts, r.Attempt)
	if err != nil {
		outcome.err = err
		return false
	}
	s := &f.stored
	s.ids, s.attempts = append(s.ids, r.Delivery.ID), append(s.attempts, attempts)
	s.states, s.tries = append(s.states, db.StoredIndex(animalstore.DeliveryStates, r.State)), append(s.tries, int64(r.Delivery.Tries+1))
	s.dueAt, s.retries = append(s.dueAt, r.Next.Milli()), append(s.retries, r.Delivery.Retries)
	after, changed, disable := f.health.After(r)
	if changed {
		f.health, f.changed = after, true
	}
	if disable != "" && f.disabled == "" && f.active() {
		f.disabled, outcome.disabled = disable, disable
	}
	return true
}

// active reports whether the webhook was active before.
func (f *finished) active() bool { return f.found && f.webhook.State == animalstore.WebhookActive }

// storeResults leaves out what a retry by hand has set since the claim.
const storeResults = `UPDATE deliveries d SET attempts = r.attempts, leased_until = 0,
		state = CASE WHEN d.retries = r.retries THEN r.state ELSE d.state END,
		tries = CASE WHEN d.retries = r.retries THEN r.tries ELSE d.tries END,
		due_at = CASE WHEN d.retries = r.retries THEN r.due_at ELSE d.due_at END
	FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS r (id, attempts, state, tries, due_at, retries)
	WHERE d.id = r.id`

// store stores what was added, and claims at most n other deliveries.
func (f *finished) store(ctx context.Context, tx pgx.Tx, n int, now, lease animalstore.Time) (claimed []db.ClaimedDelivery, err error) {
	s, id := &f.stored, f.webhook.ID
	if len(s.ids) == 0 {
		return nil, nil
	}
	var batch pgx.Batch
	batch.Queue(storeResults, s.ids, s.attempts, s.states, s.tries, s.dueAt, s.retries)
	if f.found && f.changed {
		batch.Queue("UPDATE webhooks SET delivered_at = $2, failed_at = $3, failing_since = $4 WHERE id = $1", id, f.health.DeliveredAt, f.health.FailedAt, f.health.FailingSince)
	}
	if f.active() && f.disabled == "" && n > 0 {
		batch.Queue(claimDue, id, now.Milli(), n, lease.Milli()).Query(func(rows pgx.Rows) (err error) {
			claimed, err = appendRows(nil, rows, db.ScanClaimed(lease))
			return err
		})
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil || f.disabled == "" {
		return claimed, failed("store attempts", err)
	}
	return nil, storeWebhook(db.WithOrigin(ctx, db.Service), tx, f.webhook, f.health.Disabled(f.webhook, f.disabled))
}

func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}
