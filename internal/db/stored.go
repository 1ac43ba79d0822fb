package db

import (
	"fmt"
	"math"
	"slices"
)

// Rules that both engines share live in this package, next to each resource. An engine
// adds only SQL and transactions.

// A status, a state or an event type is stored as its index in the domain's list. SQL
// text uses these names for the indexes it needs; a test compares them with the lists.
const (
	SQLPetCreated      = "0"
	SQLCategoryUpdated = "5"

	SQLWebhookActive   = "0"
	SQLWebhookPaused   = "1"
	SQLDeliveryPending = "0"

	// Conditions.
	SQLOpenOrder = "status <= 1"          // placed or approved
	SQLPing      = "event_id = 0"         // a delivery without an event
	SQLAdmin     = "permissions & 4 <> 0" // a key that can manage keys
)

// StoredIndex returns the stored value of s. It panics if s is unknown, because callers
// have validated it.
func StoredIndex[S comparable](all []S, s S) int64 {
	i := slices.Index(all, s)
	if i < 0 {
		panic(fmt.Sprintf("%v passed validation but is unknown", s))
	}
	return int64(i)
}

// FromStored returns the value stored as i, or "" if i is unknown.
func FromStored[S ~string](all []S, i int64) S {
	if i < 0 || i >= int64(len(all)) {
		return ""
	}
	return all[i]
}

// UpperBound returns the exclusive upper bound of the ids in a list.
func UpperBound(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}
