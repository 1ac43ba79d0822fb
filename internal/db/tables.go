package db

import (
	"context"
	"slices"
	"strings"
)

// Table is a table as every engine keeps it. The names are the same everywhere,
// and so is what a value means: a store can be carried from one engine to another
// row by row.
type Table struct {
	Name    string
	Holds   string // what its rows are, for people
	Key     []string
	Columns []Column // all of them, those of the key first
	Serial  bool     // the engine gives the ids, and never one twice
}

// Column is a column of a table. None holds nulls.
type Column struct {
	Name string
	Kind Kind
}

// Kind is the kind of values in a column.
type Kind int

const (
	Int   Kind = iota // int64
	Text              // string
	Bytes             // []byte
)

// Tables are all that a store consists of, in an order in which rows come after
// those they refer to.
var Tables = []Table{
	{Name: "categories", Holds: "categories", Key: []string{"id"}, Columns: columns("id", "name:text")},
	{Name: "pets", Holds: "pets", Key: []string{"id"}, Serial: true, Columns: columns("id", "name:text", "category_id", "status")},
	{Name: "orders", Holds: "orders", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "pet_id", "status", "created_at", "updated_at")},
	{Name: "keys", Holds: "keys", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "name:text", "plan:text", "per_minute", "per_day", "permissions", "environment:text",
			"created_at", "expires_at", "last_used", "revoked_at", "unbanned_at")},
	{Name: "key_secrets", Holds: "secrets of keys", Key: []string{"hash"}, Columns: columns("hash:bytes", "key_id", "expires_at")},
	{Name: "limit_states", Holds: "limits and bans", Key: []string{"key_id"},
		Columns: columns("key_id", "minute_used", "minute_end", "minute_refused", "day_used", "day_end", "day_refused",
			"strikes", "strikes_since", "banned_at", "banned_until", "ban_level")},
	{Name: "usage", Holds: "hours of usage", Key: []string{"key_id", "hour"}, Columns: columns("key_id", "hour", "admitted", "refused")},
	{Name: "answers", Holds: "idempotency records", Key: []string{"key_id", "route", "token"},
		Columns: columns("key_id", "route:text", "token:text", "body_hash:bytes", "answer:text", "created_at")},
}

// columns reads "name" as a column of integers, "name:text" and "name:bytes" as
// what they say.
func columns(specs ...string) []Column {
	all := make([]Column, len(specs))
	for i, spec := range specs {
		name, kind, _ := strings.Cut(spec, ":")
		all[i] = Column{name, Kind(slices.Index([]string{"", "text", "bytes"}, kind))}
	}
	return all
}

// ColumnNames are the names of all columns.
func (t *Table) ColumnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// rows is the query for all rows in the order of their keys. Engines agree on
// that order: they compare text and bytes byte by byte.
func (t *Table) rows() string {
	return "SELECT " + strings.Join(t.ColumnNames(), ", ") + " FROM " + t.Name + " ORDER BY " + strings.Join(t.Key, ", ")
}

// Source is a store to read whole, as it was at one moment. It is for one
// goroutine at a time. To read changes nothing in the store.
type Source interface {
	// Query asks what every engine understands. Before the next query the rows
	// are read to their end or closed.
	Query(ctx context.Context, query string) (Cursor, error)

	// LastID is the last id that a serial table gave, or 0.
	LastID(ctx context.Context, t *Table) (int64, error)

	// Checks are those that are the engine's own, besides [Checks].
	Checks() []Check

	Close() error
}

// Target is a store to fill whole, in one transaction that keeps others from
// writing. As a [Source] it tells what it holds by then.
type Target interface {
	Source

	// Write adds rows with the columns of a table, in their order.
	Write(ctx context.Context, t *Table, rows Cursor) error

	// SetLastID makes the next id that a serial table gives higher than this one.
	SetLastID(ctx context.Context, t *Table, id int64) error

	// Commit stores all of it. If there is none before Close, or it returns an
	// error other than ErrOutcomeUnknown, the store is as it was.
	Commit(ctx context.Context) error
}

// Cursor reads rows one after the other.
type Cursor interface {
	// Next goes to the next row, and reports whether there is one.
	Next() bool
	// Values are those of the row, until Next is called again: int64, string,
	// []byte or nil.
	Values() ([]any, error)
	// Err is what ended the rows early, if anything did.
	Err() error
	Close()
}
