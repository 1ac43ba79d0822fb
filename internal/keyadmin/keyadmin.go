// Package keyadmin manages API keys for an operator: directly in a database, or over
// HTTP with a key that has the permission admin.
package keyadmin

import (
	"context"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// Keys are the keys of a store. Its implementations are [Database] and [Server].
type Keys interface {
	// Create adds a key that passed Validate, and returns its secret.
	Create(context.Context, animalstore.NewKey) (key animalstore.Key, secret string, err error)
	// List lists keys, the latest first.
	List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error]
	// Show returns a key, and its current limits if they are known.
	Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error)
	// Usage is by the hour, the latest first.
	Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error)
	// Rotate gives a key a new secret. The old ones keep working for the grace
	// period.
	Rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error)
	// Update changes a key.
	Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error)
	// Revoke disables a key permanently.
	Revoke(ctx context.Context, id int64) (animalstore.Key, error)
	// Unban lifts the ban of a key, and reports whether there was one.
	Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error)
}
