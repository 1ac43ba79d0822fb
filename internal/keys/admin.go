package keys

import (
	"context"
	"time"

	"animalstore"
)

// AdminStore is where an [Admin] stores keys. Its methods are those of db.DB.
type AdminStore interface {
	CreateKey(ctx context.Context, k animalstore.NewKey, hash [32]byte, at animalstore.Time) (animalstore.Key, error)
	Key(ctx context.Context, id int64) (animalstore.Key, error)
	UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(k *animalstore.Key, otherAdmin bool) error) (animalstore.Key, error)
	RotateKey(ctx context.Context, id int64, hash [32]byte, at, until animalstore.Time, check func(*animalstore.Key) error) (animalstore.Key, error)
}

// Admin manages keys directly in a store, for its operator. Unlike the API it may
// remove the last key with the permission admin, because the operator can always
// create another. Errors are those of the store.
type Admin struct{ Store AdminStore }

// Create adds a key that passed Validate, and returns its secret.
func (a Admin) Create(ctx context.Context, k animalstore.NewKey) (key animalstore.Key, secret string, err error) {
	secret = Mint(k.Environment)
	key, err = a.Import(ctx, k, secret)
	return key, secret, err
}

// Import adds a key whose secret was created elsewhere. See [ValidateForeign].
func (a Admin) Import(ctx context.Context, k animalstore.NewKey, secret string) (animalstore.Key, error) {
	return a.Store.CreateKey(ctx, k, Hash(secret), now())
}

// Rotate gives a key a new secret. The old ones keep working for the grace period.
func (a Admin) Rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error) {
	if key, err = a.Store.Key(ctx, id); err != nil {
		return animalstore.Key{}, "", err
	}
	secret = Mint(key.Environment)
	at := now()
	key, err = a.Store.RotateKey(ctx, id, Hash(secret), at, animalstore.At(at.Add(grace)), nil)
	return key, secret, err
}

// SetPlan puts a key on a plan. See [animalstore.Plan.LimitsFor] for custom.
func (a Admin) SetPlan(ctx context.Context, id int64, plan animalstore.Plan, custom animalstore.Limits) (animalstore.Key, error) {
	return a.change(ctx, id, func(k *animalstore.Key) error {
		if err := k.CheckChangeable(); err != nil {
			return err
		}
		return k.SetPlan(plan, custom)
	})
}

// Revoke disables a key permanently.
func (a Admin) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	return a.change(ctx, id, func(k *animalstore.Key) error { k.Revoke(now()); return nil })
}

// Unban lifts the ban of a key.
func (a Admin) Unban(ctx context.Context, id int64) (animalstore.Key, error) {
	return a.change(ctx, id, func(k *animalstore.Key) error { k.UnbannedAt = now(); return nil })
}

func (a Admin) change(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	return a.Store.UpdateKey(ctx, id, now(), func(k *animalstore.Key, _ bool) error { return change(k) })
}

func now() animalstore.Time { return animalstore.At(time.Now()) }
