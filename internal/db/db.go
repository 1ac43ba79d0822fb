// Package db defines the storage of the service: the [DB] interface and what its
// methods promise. These comments are the contract; package dbtest holds every
// engine to it.
package db

import (
	"context"
	"errors"
	"time"

	"animalstore"
)

// The errors that callers can tell apart with errors.Is. Any other error is an
// [*animalstore.Error] for the client, the context's error, or a bug.
var (
	// ErrNotFound: the pet, order, category, key, webhook or delivery doesn't exist. It is the same
	// error for all of them and carries no code: the caller knows what it looked
	// for and words the message.
	ErrNotFound = errors.New("not found")
	// ErrExists: another key has this secret, or another row has this id.
	ErrExists = errors.New("already exists")
	// ErrFull: the disk is full. Reads still work, and writes work again as soon
	// as there is space.
	ErrFull = errors.New("storage full")
	// ErrUnavailable: the database can't be reached, or another process has
	// locked it. A retry may succeed. A write that failed like this changed
	// nothing.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrOutcomeUnknown: the connection was lost after a write was sent, so it
	// may or may not have been stored. Only a write with [Idempotency] can be
	// retried without the risk of storing it twice.
	ErrOutcomeUnknown = errors.New("the outcome of the write is unknown")
)

// DB stores pets, orders, categories and keys. All methods are safe for
// concurrent use.
//
// A write that returns nil is on disk, and every read that starts afterwards
// sees it. A write that returns an error changed nothing, except possibly with
// ErrOutcomeUnknown. A context cancels a write only until the write begins; from
// then on the write runs to completion.
//
// Ids are never reused, not even after a pet is removed. A new id is higher than
// the id of every pet, order or key whose creation had returned before this call
// started; ids created concurrently are in no particular order.
//
// Every method that takes an id returns ErrNotFound if nothing has that id,
// unless its comment says otherwise. It then calls none of its functions.
//
// Every change of a pet, order, category or key adds an event to the store in the
// same transaction: both are stored or neither. A change that affects several
// resources adds one event for each, first that of the resource which the caller
// changed, then those of the resources that it affected: order.created before
// pet.updated, pet.created before category.updated for a new category. A write that
// changes nothing adds none. The key and the request in an event are those of
// [ActorOf] the context. Ids of events are consecutive and start at 1. All readers
// see the same events in the same order, and the events of one resource are in the
// order of its changes. See events.go.
//
// Functions that callers pass in (change, check) run inside the transaction: no
// other write happens between what they see and what is stored. If one returns an
// error, the method changes nothing and returns that error. An engine may call it
// again after a conflict, so it must not accumulate state.
type DB interface {
	// CreatePet adds a pet that passed Validate, and its category if that
	// doesn't exist. An empty status means available. idempotency may be nil.
	CreatePet(ctx context.Context, p animalstore.NewPet, idempotency *Idempotency) (pet animalstore.Pet, replayed bool, err error)

	// Pet returns one pet.
	Pet(ctx context.Context, id int64) (animalstore.Pet, error)

	// UpdatePet calls change with a pet and stores the result, and its category
	// if that doesn't exist. ordered reports whether the pet has an open order.
	UpdatePet(ctx context.Context, id int64, change func(p *animalstore.Pet, ordered bool) error) (animalstore.Pet, error)

	// DeletePet removes a pet if check returns nil. ordered reports whether the
	// pet has an open order.
	DeletePet(ctx context.Context, id int64, check func(p *animalstore.Pet, ordered bool) error) error

	// Pets returns pets in descending order of id. Its cost depends on the limit,
	// not on the number of pets stored. Nobody may change the result: calls that
	// arrive together may get the same slice.
	Pets(ctx context.Context, q PetQuery) ([]animalstore.Pet, error)

	// PlaceOrder adds an order for a pet and makes the pet pending. If several
	// callers order the same pet at once, exactly one succeeds. It returns
	// ErrNotFound if the pet doesn't exist, and an error with the code
	// pet_not_available if the pet isn't available. idempotency may be nil.
	PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, idempotency *Idempotency) (order animalstore.Order, replayed bool, err error)

	// Order returns one order.
	Order(ctx context.Context, id int64) (animalstore.Order, error)

	// Orders returns orders in descending order of id, at the same cost as Pets.
	Orders(ctx context.Context, q OrderQuery) ([]animalstore.Order, error)

	// UpdateOrder calls change with an order and stores the new status, together
	// with the status that it implies for the pet.
	UpdateOrder(ctx context.Context, id int64, change func(o *animalstore.Order) error) (animalstore.Order, error)

	// Category returns one category.
	Category(ctx context.Context, id int64) (animalstore.Category, error)

	// Categories returns categories in ascending order of id.
	Categories(ctx context.Context, q CategoryQuery) ([]animalstore.Category, error)

	// PutCategory creates or renames a category if check returns nil. before is
	// the stored category, or nil if there is none.
	PutCategory(ctx context.Context, c animalstore.Category, check func(before *animalstore.Category) error) (created bool, err error)

	// DropIdempotencyRecords removes at most max of the records stored for
	// [Idempotency] before a time, oldest first, and returns how many it removed.
	DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// CreateKey adds a key that passed Validate, with the hash of its secret. It
	// returns ErrExists if another key has that secret.
	CreateKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (animalstore.Key, error)

	// CreateFirstKey does what CreateKey does if there has never been a key, and
	// otherwise nothing. If several callers do this at once, exactly one creates
	// a key.
	CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (created bool, err error)

	// KeyByHash returns the key with that secret, including expired and revoked
	// ones. An unknown secret isn't an error here: package keys asks for whatever
	// clients send, and doesn't import this package.
	KeyByHash(ctx context.Context, hash KeyHash) (key animalstore.Key, found bool, err error)

	// KeysVersion identifies a state of all keys and their secrets: while it doesn't
	// change, KeyByHash returns the same, except for when a key was last used. It
	// changes in the transaction of the change, whichever process makes that, and never
	// to a value it had before.
	KeysVersion(ctx context.Context) (version string, err error)

	// Key returns one key, including expired and revoked ones. Like the other methods
	// that return keys, except KeyByHash, it sets the ban that SaveLimitStates stored
	// last, unless it was lifted: it may be over.
	Key(ctx context.Context, id int64) (animalstore.Key, error)

	// Keys returns keys in descending order of id, including expired and revoked
	// ones.
	Keys(ctx context.Context, q KeyQuery) ([]animalstore.Key, error)

	// UpdateKey calls change with a key and stores the result. otherAdmin reports
	// whether another key of the same environment can manage keys at that time.
	UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(k *animalstore.Key, otherAdmin bool) error) (animalstore.Key, error)

	// RotateKey adds a secret to a key if check returns nil. The existing secrets
	// expire at the given time, unless they expire earlier. It returns an error if
	// the key is revoked, and ErrExists if another key has that secret. check may
	// be nil.
	RotateKey(ctx context.Context, id int64, hash KeyHash, at, until animalstore.Time, check func(*animalstore.Key) error) (animalstore.Key, error)

	// SaveUsage adds to the stored usage of keys and updates when each was last
	// used, for all of them or none.
	SaveUsage(ctx context.Context, usage []animalstore.Usage) error

	// Usage returns a key's usage per hour since a time, newest first, without
	// the hours that had no requests. A key that doesn't exist has no usage.
	Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error)

	// DropUsage removes at most max hours of usage before a time and returns how
	// many it removed.
	DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// LimitState returns the state of a key's limits that was saved last, or the
	// zero value if none was.
	LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error)

	// SaveLimitStates replaces the saved limits of keys, for all of them or none.
	// Servers that share keys each save what they know, and the last to save may
	// know the least. So a state is skipped if the saved one is ahead of it,
	// comparing BannedAt, then Day.End, then Day.Used. With DayShortened, only
	// BannedAt is compared. A ban that wasn't saved before, and wasn't lifted before it
	// was saved, adds a key.banned event: one for each key, with its last ban.
	SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error

	// Events returns events with higher ids than q.After, oldest first. If few events
	// match, it looks at no more than about EventsLookedAt of them: last is the id of the
	// last event it looked at, at least q.After, and the next call goes on from there.
	// It returns ErrEventsExpired if q.After is not in the range of EventRange.
	Events(ctx context.Context, q EventQuery) (events []animalstore.Event, last int64, err error)

	// EventRange returns the id before the oldest event that is kept, and the newest
	// id: exactly the values of After that Events accepts. Both are 0 in a new store.
	EventRange(ctx context.Context) (first, newest int64, err error)

	// PublishEvents makes the events of all changes that have returned readable, and
	// returns the newest id. Until then Events may not return them. It may leave some
	// for the next call if there are very many: then newest rises with each call.
	PublishEvents(ctx context.Context) (newest int64, err error)

	// DropEvents removes at most max of the oldest events, up to the first that isn't
	// older than a time, and returns how many it removed. It never removes the newest.
	DropEvents(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// Webhooks and their deliveries.
	WebhookStore

	// Sessions of the console.
	Sessions

	// Size returns how many bytes the store takes up on disk, its indexes included. It
	// may be a little out of date.
	Size(ctx context.Context) (bytes int64, err error)

	// Generation identifies a state of the pets, orders and categories: while it
	// is stable and doesn't change, repeating a read of them returns the same
	// result. It doesn't cover keys, because other processes change those next to
	// a running server. An engine that can't know of every change, because other
	// servers write to the same database, is never stable.
	Generation() (generation uint64, stable bool)

	// Ping reports whether a read would succeed.
	Ping(ctx context.Context) error

	// Close waits for running operations and releases the database. Operations
	// started later return an error.
	Close() error
}

// KeyHash is the SHA-256 hash of a key's secret. The secret itself is never
// stored.
type KeyHash = [32]byte

// KeyQuery selects keys. A zero Before doesn't restrict the result.
type KeyQuery struct {
	Before int64 // only lower ids
	Limit  int   // at least 1
}

// Idempotency lets a client retry a write without repeating it. The first write
// stores its result in the same transaction, in an idempotency record. A write
// with the same KeyID, Route and Token within [IdempotencyWindow] changes
// nothing: it returns the stored result and replayed = true if BodyHash is the
// same, and otherwise an error with the code idempotency_key_reused. A retry that
// arrives while the first write is in progress waits for it. A write that fails
// stores no record.
type Idempotency struct {
	KeyID    int64
	Route    string
	Token    string
	BodyHash [32]byte
	At       animalstore.Time
}

// IdempotencyWindow is how long an idempotency record is valid.
const IdempotencyWindow = 24 * time.Hour

// PetQuery selects the pets that match all of its fields. A field with its zero
// value matches every pet.
type PetQuery struct {
	IDs        []int64
	CategoryID *int64
	Status     animalstore.PetStatus
	Before     int64 // only lower ids
	Limit      int   // at least 1

	// Large, if it isn't nil, is called once if the names that are read exceed
	// [LargeList], as soon as they do. The list goes on when it returns, or fails with
	// its error.
	Large func() error

	// Room, if it isn't nil, may be called for memory for the result, when reading begins.
	// The caller can use that for another list later.
	Room func() []animalstore.Pet
}

// LargeList is the size in bytes of a list that takes so long to read and to encode
// that requests take turns.
const LargeList = 32 << 10

// CategoryQuery selects categories. A nil After doesn't restrict the result.
type CategoryQuery struct {
	After *int64 // only higher ids
	Limit int    // at least 1
}

// OrderQuery selects the orders that match all of its fields. A field with its
// zero value matches every order.
type OrderQuery struct {
	Status animalstore.OrderStatus
	PetID  int64
	Before int64 // only lower ids
	Limit  int   // at least 1
}
