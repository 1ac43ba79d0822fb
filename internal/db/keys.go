package db

import (
	"context"

	"animalstore"
)

// Keys stores API keys.
type Keys interface {
	// CreateKey adds a key that passed Validate, with the hash of its secret. It
	// returns ErrExists if another key has that secret.
	CreateKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (animalstore.Key, error)

	// CreateFirstKey does the same as CreateKey if there has never been a key, and
	// otherwise nothing. If several callers do this at once, exactly one creates a key.
	CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (created bool, err error)

	// KeyByHash returns the key with that secret, including expired and revoked ones.
	// An unknown secret isn't an error here: package keys looks up anything that
	// clients send, and doesn't import this package.
	KeyByHash(ctx context.Context, hash KeyHash) (key animalstore.Key, found bool, err error)

	// KeysByHash returns the keys that KeyByHash finds for these secrets, with one read.
	KeysByHash(ctx context.Context, hashes []KeyHash) (map[KeyHash]animalstore.Key, error)

	// KeysVersion identifies a state of all keys and their secrets: while it doesn't
	// change, KeyByHash returns the same results, except for the time of a key's last
	// use. It changes in the same transaction as the keys, whichever process changes
	// them, and never returns to an earlier value.
	KeysVersion(ctx context.Context) (version string, err error)

	// Key returns one key, including expired and revoked ones. Like the other methods
	// that return keys, except KeyByHash, it includes the ban that SaveLimitStates last
	// stored, unless it was lifted. That ban may be over.
	Key(ctx context.Context, id int64) (animalstore.Key, error)

	// KeyNames returns the names of the keys with these ids. Ids of no key aren't in the
	// result.
	KeyNames(ctx context.Context, ids []int64) (map[int64]string, error)

	// Keys returns keys in descending order of id, including expired and revoked
	// ones.
	Keys(ctx context.Context, page Page) ([]animalstore.Key, error)

	// UpdateKey calls change with a key and stores the result. otherAdmin reports
	// whether another key of the same environment can manage keys at that time.
	// Suspending a key also deletes its sessions.
	UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(k *animalstore.Key, otherAdmin bool) error) (animalstore.Key, error)

	// RotateKey adds a secret to a key if check returns nil. It returns an error if the
	// key is revoked, and ErrExists if another key has that secret. check may be nil.
	RotateKey(ctx context.Context, id int64, r KeyRotation, check func(*animalstore.Key) error) (animalstore.Key, error)
}

// KeyRotation gives a key a new secret.
type KeyRotation struct {
	Hash     KeyHash // of the new secret
	At       animalstore.Time
	OldUntil animalstore.Time // when the existing secrets expire, unless they expire earlier
}

// KeyHash is the SHA-256 hash of a key's secret. The secret itself is never
// stored.
type KeyHash = [32]byte

// KeyQuery selects keys. A zero Before doesn't restrict the result.
type KeyQuery struct {
	Before int64 // only lower ids
	Limit  int   // at least 1
}

// KeyColumns are read by [ScanKey], followed by the end and the level of the ban, and the
// expiry of the secret by which the key was found: 0 unless the query searches by secret.
const KeyColumns = "keys.id, name, plan, per_minute, per_day, permissions, environment, created_at, keys.expires_at, " +
	"last_used, revoked_at, unbanned_at, suspended_at, networks"

// ScanKey scans a key.
func ScanKey(row Row) (animalstore.Key, error) {
	var k animalstore.Key
	var permissions, created, expires, used, revoked, unbanned, suspended, bannedUntil, secretExpires int64
	err := row.Scan(&k.ID, &k.Name, (*string)(&k.Plan), &k.Limits.PerMinute, &k.Limits.PerDay, &permissions,
		(*string)(&k.Environment), &created, &expires, &used, &revoked, &unbanned, &suspended,
		(*string)(&k.Networks), &bannedUntil, &k.Ban.Level, &secretExpires)
	k.Permissions = animalstore.Permissions(permissions)
	k.CreatedAt, k.ExpiresAt = animalstore.AtMilli(created), animalstore.AtMilli(expires)
	k.LastUsedAt, k.RevokedAt = animalstore.AtMilli(used), animalstore.AtMilli(revoked)
	k.UnbannedAt, k.SuspendedAt = animalstore.AtMilli(unbanned), animalstore.AtMilli(suspended)
	k.Ban.Until, k.SecretExpiresAt = animalstore.AtMilli(bannedUntil), animalstore.AtMilli(secretExpires)
	return k, err
}

// KeyEventData returns a key as a response would show it at that time.
func KeyEventData(key animalstore.Key, at animalstore.Time) string {
	return EventData(key.At(at.Time))
}

// KeyChange returns the type of the event for a change of a key at that time, if any. A
// new time of last use isn't a change, and a ban that was already over isn't lifted.
func KeyChange(before, after animalstore.Key, at animalstore.Time) (t animalstore.EventType, changed bool) {
	before, after = before.At(at.Time), after.At(at.Time)
	before.LastUsedAt, after.LastUsedAt = animalstore.Time{}, animalstore.Time{}
	before.UnbannedAt, after.UnbannedAt = animalstore.Time{}, animalstore.Time{}
	switch {
	case before == after:
		return "", false
	case before.RevokedAt != after.RevokedAt:
		return animalstore.KeyRevoked, true
	case before.Ban != after.Ban:
		return animalstore.KeyUnbanned, true
	}
	return animalstore.KeyUpdated, true
}

// SuspendedNow reports whether a change of a key suspends it.
func SuspendedNow(before, after *animalstore.Key) bool {
	return after.Suspended() && !before.Suspended()
}

// CheckRotation returns an error if a key can't get another secret. check may be nil.
func CheckRotation(key *animalstore.Key, check func(*animalstore.Key) error) error {
	if check != nil {
		if err := check(key); err != nil {
			return err
		}
	}
	return key.CheckChangeable()
}
