package db

import (
	"bytes"
	"encoding/json"
	"time"

	"animalstore"
)

// Idempotency lets a client retry a write without repeating it. The first write
// stores its result in the same transaction, in an idempotency record. A write
// with the same KeyID, Operation and Token within [IdempotencyWindow] changes
// nothing: it returns the stored result and replayed = true if BodyHash is the
// same, and otherwise an error with the code idempotency_key_reused. A retry that
// arrives while the first write is in progress waits for it. A write that fails
// stores no record.
type Idempotency struct {
	KeyID     int64
	Operation string // its id, and what it applies to if that is in the path
	Token     string
	BodyHash  [32]byte
	At        animalstore.Time
}

// IdempotencyWindow is how long an idempotency record is valid.
const IdempotencyWindow = 24 * time.Hour

// ExpiredAt returns the time before which records have expired.
func (i *Idempotency) ExpiredAt() animalstore.Time {
	return animalstore.At(i.At.Add(-IdempotencyWindow))
}

// Replay sets result to the stored result of an earlier write. It returns an error if
// the earlier write had a different body.
func (i *Idempotency) Replay(bodyHash []byte, stored string, result any) error {
	if !bytes.Equal(bodyHash, i.BodyHash[:]) {
		return animalstore.Errorf(animalstore.IdempotencyKeyReused, "Idempotency-Key was already used with another body: send a new key for a new request, or the same body to retry")
	}
	return json.Unmarshal([]byte(stored), result)
}
