// Package db defines the service's storage: the [DB] interface and what its methods
// promise. These comments are the contract; package dbtest checks every engine against
// it.
package db

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"animalstore"
)

// The errors that callers can distinguish with errors.Is. Any other error is an
// [*animalstore.Error] for the client, the context's error, or a bug.
var (
	// ErrNotFound: the pet, photo, order, category, key, webhook or delivery doesn't exist. It
	// is the same error for all of them and carries no code: the caller knows what it
	// was looking for and words the message.
	ErrNotFound = errors.New("not found")
	// ErrExists: another key has this secret, or another row has this id.
	ErrExists = errors.New("already exists")
	// ErrFull: the disk is full. Reads still work, and writes work again as soon
	// as there is space.
	ErrFull = errors.New("storage full")
	// ErrUnavailable: the database can't be reached, or another process has locked it.
	// A retry may succeed. A write that failed with this error changed nothing.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrOutcomeUnknown: the connection was lost after a write was sent, or the
	// deadline passed while it ran, so it may or may not be stored. Only a write with
	// [Idempotency] can be retried without the risk of storing it twice.
	ErrOutcomeUnknown = errors.New("the outcome of the write is unknown")
)

// DB stores pets, photos, orders, categories, keys and webhooks. All methods are safe for
// concurrent use.
//
// A write that returns nil is on disk, and every read that starts afterwards
// sees it. A write that returns an error changed nothing, except possibly with
// ErrOutcomeUnknown. A context cancels a write only until the write begins; from
// then on the write runs to completion, even if its caller returns at its deadline.
//
// Ids are never reused, not even after a pet is removed. A new id is higher than
// the id of every pet, photo, order or key whose creation had returned before this call
// started; ids created concurrently are in no particular order.
//
// Every method that takes an id returns ErrNotFound if nothing has that id,
// unless its comment says otherwise. It then calls none of its functions.
//
// Every change of a pet, photo, order, category, key or webhook adds an event to the store in the
// same transaction: both are stored or neither. A change that affects several
// resources adds one event for each: first for the resource that the caller changed,
// then for the resources it affected. So order.created comes before pet.updated, and
// pet.created before category.updated for a new category. But the photos of a pet that
// is removed go first, so photo.deleted comes before pet.deleted. A write that changes nothing
// adds none. An event has the origin of the context, see [WithOrigin]. Bans and disabled
// webhooks have the origin [Service].
// Ids of events are consecutive and start at 1. All readers see the same events in the
// same order, and the events of one resource are in the order of its changes. See
// events.go.
//
// Functions that callers pass in (change, check) run inside the transaction: no
// other write happens between what they see and what is stored. If one returns an
// error, the method changes nothing and returns that error. An engine may call it
// again after a conflict, so it must not accumulate state.
type DB interface {
	Pets
	Names
	Inventory
	Photos
	Orders
	Categories
	Keys
	Limits
	Events
	Webhooks
	Sessions
	Failures

	// DropIdempotencyRecords removes at most max of the records stored for
	// [Idempotency] before a time, oldest first, and returns how many it removed.
	DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// Size returns how many bytes the store uses on disk, including indexes. It may be
	// slightly out of date.
	Size(ctx context.Context) (bytes int64, err error)

	// Generation identifies a state of the pets, orders and categories: while it is
	// stable and doesn't change, repeating a read of them returns the same result. It
	// doesn't cover keys, because other processes may change them while a server runs.
	// An engine that can't know about every change, because other servers write to the
	// same database, is never stable.
	Generation() (generation uint64, stable bool)

	// Ping reports whether a read would succeed.
	Ping(ctx context.Context) error

	// Close waits for running operations and releases the database. Operations
	// started later return an error.
	Close() error
}

// Rules that both engines share live in this package, next to each resource. An engine
// adds only SQL and transactions.

// A status, a state or an event type is stored as its index in the domain's list. SQL text
// contains the indexes it needs, such as 0 for active webhooks and pending deliveries. A
// test holds the lists to them.

// Row is a row that an engine has read. Its columns are those that the constants next to
// each scan function name.
type Row interface{ Scan(dest ...any) error }

// ScanValue scans a row of one column.
func ScanValue[T any](row Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}

// errDamagedRow means that this program can't have written a row as it is stored. Only the
// request that reads it fails.
var errDamagedRow = errors.New("a stored row is damaged")

// StoredIndex returns the stored value of s. It panics if s is unknown, because callers
// have validated it.
func StoredIndex[S comparable](all []S, s S) int64 {
	i := slices.Index(all, s)
	if i < 0 {
		panic(fmt.Sprintf("%v passed validation but is unknown", s))
	}
	return int64(i)
}

// StoredIndexes returns the stored values of a whole list.
func StoredIndexes[S any](all []S) []int64 {
	stored := make([]int64, len(all))
	for i := range all {
		stored[i] = int64(i)
	}
	return stored
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

// OpenReason is why a database can't be opened.
type OpenReason int

const (
	Absent      OpenReason = iota + 1 // there is no store
	Foreign                           // it contains something else
	Served                            // a server is using it
	Unreachable                       // the database server doesn't respond
)

// OpenError means that a database can't be opened and the caller may have meant another
// one. How to specify another one depends on the caller.
type OpenError struct {
	Reason OpenReason
	Text   string
}

func (e *OpenError) Error() string { return e.Text }
