package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// advisoryLock is the number of an advisory lock. All of them are declared here, because
// two with one number would make operations wait for each other that have nothing in common.
type advisoryLock int64

const (
	migrateLock  advisoryLock = 0x414e5354             // "ANST"; one program at a time migrates
	publishLock  advisoryLock = 0x414e5354_0000 + iota // one session at a time publishes events
	dispatchLock                                       // one session at a time turns events into deliveries
	failuresLock                                       // one at a time stores or drops failures: ids become visible in order, and the total stays exact
	firstKeyLock                                       // one at a time creates the first key
	webhooksLock                                       // one at a time creates a webhook, so that there aren't too many
)

// take waits for the lock, which ends with the transaction.
func (l advisoryLock) take(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(l))
	return failed("take advisory lock", err)
}
