// Package db says what the service asks of a database. The comments here are
// the storage contract; package dbtest holds every engine to it.
package db

import (
	"context"
	"errors"
	"time"

	"animalstore"
)

// The failures an engine tells apart. Anything else it returns is either an
// [*animalstore.Error] for the caller, the context's own error, or a defect.
var (
	// ErrNotFound: there is no such key.
	ErrNotFound = errors.New("not found")
	// ErrExists: there is a key with that secret, or a row with that id, already.
	ErrExists = errors.New("exists already")
	// ErrFull: there is no room left to write. Reads go on, and writes work
	// again as soon as there is room.
	ErrFull = errors.New("storage full")
	// ErrUnavailable: the database cannot be reached or is locked by somebody
	// else. Trying again later may work. A write that failed so was not done.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrOutcomeUnknown: a write was sent to the database and its answer lost, so
	// it was done or it was not. Only one with [Idempotency] can be sent again without
	// being done twice.
	ErrOutcomeUnknown = errors.New("the outcome of the write is not known")
)

// DB keeps the store. All methods may be called at once from any goroutine.
//
// A write that returns nil is on disk and seen by every read that starts
// afterwards. A write that returns an error changed nothing, unless it is
// ErrOutcomeUnknown. A context that ends before a write is begun cancels it;
// once begun it is carried through.
//
// An id is never given twice, and is higher than that of every pet, order or
// key whose creation had returned before this one was called. Those made at the
// same time may appear in any order.
type DB interface {
	// CreatePet adds a pet that passed Validate, and its category if there
	// is none of that id. Not even the id of a removed pet is given again. If
	// once is not nil, see [Idempotency].
	CreatePet(ctx context.Context, p animalstore.NewPet, once *Idempotency) (pet animalstore.Pet, replayed bool, err error)

	// Pet returns one pet, or an error with code pet_not_found.
	Pet(ctx context.Context, id int64) (animalstore.Pet, error)

	// UpdatePet lets change alter a pet and stores it, and its category if
	// there is none of that id, with no other change in between. ordered tells
	// change whether the pet has an open order. An error of change leaves
	// the pet as it was and is returned; pet_not_found if there is none.
	UpdatePet(ctx context.Context, id int64, change func(p *animalstore.Pet, ordered bool) error) (animalstore.Pet, error)

	// DeletePet removes a pet, unless check returns an error, which is then
	// returned; pet_not_found if there is none.
	DeletePet(ctx context.Context, id int64, check func(p *animalstore.Pet, ordered bool) error) error

	// Pets returns pets with descending ids. What it costs depends on the
	// limit, not on how many pets there are.
	Pets(ctx context.Context, q PetQuery) ([]animalstore.Pet, error)

	// PlaceOrder adds an order for a pet and makes that pending. Of any
	// number of callers at once, one gets the pet. The error has code
	// pet_not_found or pet_not_available. If once is not nil, see [Idempotency].
	PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, once *Idempotency) (order animalstore.Order, replayed bool, err error)

	// Order returns one order, or an error with code order_not_found.
	Order(ctx context.Context, id int64) (animalstore.Order, error)

	// Orders returns orders with descending ids.
	Orders(ctx context.Context, q OrderQuery) ([]animalstore.Order, error)

	// UpdateOrder lets change alter an order's status and stores it together
	// with the status it gives its pet. An error of change leaves both as
	// they were and is returned; order_not_found if there is no such order.
	UpdateOrder(ctx context.Context, id int64, change func(o *animalstore.Order) error) (animalstore.Order, error)

	// Category returns one category, or an error with code category_not_found.
	Category(ctx context.Context, id int64) (animalstore.Category, error)

	// Categories returns categories with ascending ids.
	Categories(ctx context.Context, q CategoryQuery) ([]animalstore.Category, error)

	// PutCategory names a category, unless check returns an error, which is then
	// returned. before is the category as it was, nil if there was none.
	PutCategory(ctx context.Context, c animalstore.Category, check func(before *animalstore.Category) error) (created bool, err error)

	// DropIdempotencyRecords forgets the answers stored for [Idempotency] before a time, at most
	// max of them, and tells how many it forgot.
	DropIdempotencyRecords(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// CreateKey stores a key that passed Validate, under the hash of its secret.
	// ErrExists if a key has that secret already.
	CreateKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (animalstore.Key, error)

	// CreateFirstKey is CreateKey where there has never been a key, and does
	// nothing elsewhere. Of any number of callers at once, one makes it.
	CreateFirstKey(ctx context.Context, k animalstore.NewKey, hash KeyHash, at animalstore.Time) (created bool, err error)

	// KeyByHash finds the key with that secret, live or not.
	KeyByHash(ctx context.Context, hash KeyHash) (key animalstore.Key, found bool, err error)

	// Key returns one key, live or not, or ErrNotFound.
	Key(ctx context.Context, id int64) (animalstore.Key, error)

	// Keys returns keys with descending ids, revoked ones included.
	Keys(ctx context.Context, q KeyQuery) ([]animalstore.Key, error)

	// UpdateKey lets change alter a key and stores it, with no other change in
	// between. otherAdmin tells change whether another key of the same
	// environment manages keys at that time. An error of change leaves the key
	// as it was and is returned. ErrNotFound if there is no such key.
	UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(k *animalstore.Key, otherAdmin bool) error) (animalstore.Key, error)

	// RotateKey gives a key that is not revoked a new secret, by its hash. Those
	// it had work until the given time, unless they end sooner.
	RotateKey(ctx context.Context, id int64, hash KeyHash, at, until animalstore.Time) (animalstore.Key, error)

	// SaveUsage adds to what is known of these keys' usage, and remembers when
	// they were last used: all of it or nothing.
	SaveUsage(ctx context.Context, usage []animalstore.Usage) error

	// Usage returns a key's hours since a time, newest first. Hours without a
	// request are left out.
	Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error)

	// DropUsage forgets hours before a time, at most max of them, and tells how
	// many it forgot.
	DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// LimitState returns what was saved of a key's limits last, or the zero
	// value.
	LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error)

	// SaveLimitStates replaces what is saved of these keys' limits: of all of
	// them or of none. Of several servers that share keys, each saves what it
	// knows, and the last to do so may know the least: a state is left out if the
	// saved one has a later ban, or the same and more of a day (BannedAt, Day.End,
	// Day.Used, in this order).
	SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error

	// Generation numbers the states of pets, orders and categories: while it
	// is stable and stays the same, every read of them has the same outcome. Keys
	// and what belongs to them may change under it, for commands write them
	// beside a server. An engine that cannot know of every change, because other
	// servers write to its database too, is never stable.
	Generation() (generation uint64, stable bool)

	// Ping reports whether a read would work.
	Ping(ctx context.Context) error

	Close() error
}

// KeyHash is the SHA-256 of a key's secret: all of it that is ever stored.
type KeyHash = [32]byte

// KeyQuery selects keys. The zero value of a field selects nothing out.
type KeyQuery struct {
	Before int64 // only ids below this one
	Limit  int   // at least 1
}

// Idempotency makes a write happen at most once, however often it is sent. The answer
// to the first is stored in its transaction. A write with the same KeyID, Route
// and Token within [IdempotencyWindow] of it changes nothing and gets that answer if
// its BodyHash is the same, and otherwise the error idempotency_key_reused. One
// that arrives while the first is under way waits for it.
type Idempotency struct {
	KeyID    int64
	Route    string
	Token    string
	BodyHash [32]byte
	At       animalstore.Time
}

// IdempotencyWindow is how long an answer is stored for [Idempotency].
const IdempotencyWindow = 24 * time.Hour

// PetQuery selects pets. The zero value of a field selects nothing out.
type PetQuery struct {
	IDs        []int64
	CategoryID *int64
	Status     animalstore.PetStatus
	Before     int64 // only ids below this one
	Limit      int   // at least 1
}

// CategoryQuery selects categories.
type CategoryQuery struct {
	After *int64 // only ids above this one
	Limit int    // at least 1
}

// OrderQuery selects orders. The zero value of a field selects nothing out.
type OrderQuery struct {
	Status animalstore.OrderStatus
	PetID  int64
	Before int64 // only ids below this one
	Limit  int   // at least 1
}
