package db

import (
	"context"

	"animalstore"
)

// Session is a sign-in to the console. Neither the token in the browser's cookie nor
// the key's secret is stored, only their hashes.
type Session struct {
	Hash      [32]byte // SHA-256 of the token
	Secret    KeyHash  // of the key that signed in: the session ends with it
	ExpiresAt animalstore.Time
}

// ScanSession scans the secret and the expiry of the session with this hash.
func ScanSession(hash [32]byte) func(Row) (Session, error) {
	return func(row Row) (Session, error) {
		s := Session{Hash: hash}
		var secret []byte
		var expires int64
		err := row.Scan(&secret, &expires)
		copy(s.Secret[:], secret)
		s.ExpiresAt = animalstore.AtMilli(expires)
		return s, err
	}
}

// Sessions stores the sessions of the console, so that all servers of a database share
// them.
type Sessions interface {
	// CreateSession adds a session. It returns ErrExists if another session has that
	// hash.
	CreateSession(ctx context.Context, s Session) error

	// Session returns the session with this hash, which may have expired. The caller
	// must check whether its secret is still valid.
	Session(ctx context.Context, hash [32]byte) (Session, error)

	// DeleteSession removes a session. It isn't an error if there is none.
	DeleteSession(ctx context.Context, hash [32]byte) error

	// UseForm records that a form was sent. It returns ErrExists if it was sent before:
	// of several concurrent callers, exactly one gets nil.
	UseForm(ctx context.Context, hash [32]byte, at animalstore.Time) error

	// DropSessions removes at most max sessions that expired before a time, and
	// DropForms at most max forms sent before it. They return how many they removed.
	DropSessions(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)
	DropForms(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)
}
