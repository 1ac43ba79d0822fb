package db

import (
	"context"
	"slices"
	"strings"
)

// Table describes a table. Names, and the meaning of every value, are the same in
// all engines, so that package transfer can copy a store from one engine to
// another row by row.
type Table struct {
	Name    string
	Holds   string   // what the rows are called in messages
	Key     []string // the primary key's columns
	Columns []Column // all columns, the key's first
	Serial  bool     // the engine assigns ids, and never reuses one
}

// Column is a column of a table. No column is nullable.
type Column struct {
	Name string
	Kind Kind
}

// Kind is the type of the values in a column.
type Kind int

const (
	Int   Kind = iota // int64
	Text              // string
	Bytes             // []byte
)

// Tables are all tables of a store, except those whose names begin with "console":
// sessions aren't copied, so users have to sign in to the copy again. Nor are those whose
// names begin with "failure", which would be deleted soon anyway. keys_version and store_id
// aren't copied, because each store has its own, and neither are the leases of deliveries,
// because no server of the copy has claimed any. A table comes after the tables it
// references.
var Tables = []Table{
	{Name: "categories", Holds: "categories", Key: []string{"id"}, Columns: columns("id", "name:text")},
	{Name: "pets", Holds: "pets", Key: []string{"id"}, Serial: true, Columns: columns("id", "name:text", "category_id", "status")},
	{Name: "name_entries", Holds: "entries of names", Key: []string{"entry", "pet_id"}, Columns: columns("entry:text", "pet_id", "shared")},
	{Name: "photos", Holds: "photos", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "pet_id", "content_type:text", "width", "height", "bytes", "thumbnail_bytes", "created_at")},
	{Name: "photo_parts", Holds: "parts of photos", Key: []string{"photo_id", "kind", "part"},
		Columns: columns("photo_id", "kind", "part", "data:bytes")},
	{Name: "photo_total", Holds: "size of all photos", Key: []string{"id"}, Columns: columns("id", "bytes")},
	{Name: "orders", Holds: "orders", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "pet_id", "status", "reference:text", "note:text", "created_at", "updated_at")},
	{Name: "keys", Holds: "keys", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "name:text", "plan:text", "per_minute", "per_day", "permissions", "environment:text",
			"created_at", "expires_at", "networks:text", "last_used", "revoked_at", "unbanned_at", "suspended_at")},
	{Name: "key_secrets", Holds: "secrets of keys", Key: []string{"hash"}, Columns: columns("hash:bytes", "key_id", "expires_at")},
	{Name: "limit_states", Holds: "limits and bans", Key: []string{"key_id"},
		Columns: columns("key_id", "minute_used", "minute_end", "minute_refused", "day_used", "day_end", "day_refused",
			"strikes", "strikes_since", "banned_at", "banned_until", "ban_level")},
	{Name: "usage", Holds: "hours of usage", Key: []string{"key_id", "hour"}, Columns: columns("key_id", "hour", "admitted", "refused")},
	{Name: "idempotency_records", Holds: "idempotency records", Key: []string{"key_id", "operation", "token"},
		Columns: columns("key_id", "operation:text", "token:text", "body_hash:bytes", "result:text", "created_at")},
	{Name: "events", Holds: "events", Key: []string{"id"},
		Columns: columns("id", "type", "subject_id", "pet_id", "created_at", "key_id", "request_id:text", "data:text")},
	{Name: "webhooks", Holds: "webhooks", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "url:text", "types:text", "description:text", "state", "disabled_reason:text", "secret:text", "old_secret:text",
			"old_secret_until", "created_at", "delivered_at", "failed_at", "failing_since", "from_event", "to_event")},
	{Name: "deliveries", Holds: "deliveries to webhooks", Key: []string{"id"}, Serial: true,
		Columns: columns("id", "webhook_id", "event_id", "type", "event_time", "data:text", "state", "tries", "retries", "attempts:text",
			"due_at", "created_at")},
	{Name: "webhook_position", Holds: "webhook position", Key: []string{"id"}, Columns: columns("id", "event_id")},
}

// columns parses "name" as a column of integers, and "name:text" and "name:bytes"
// as columns of those kinds.
func columns(specs ...string) []Column {
	all := make([]Column, len(specs))
	for i, spec := range specs {
		name, kind, _ := strings.Cut(spec, ":")
		all[i] = Column{name, Kind(slices.Index([]string{"", "text", "bytes"}, kind))}
	}
	return all
}

// ColumnNames returns the names of all columns.
func (t *Table) ColumnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// Source reads a snapshot of a whole store, without changing it. It isn't safe
// for concurrent use.
type Source interface {
	// Query runs a query in the SQL that all engines understand. Only one cursor
	// can be open at a time.
	Query(ctx context.Context, query string) (Cursor, error)

	// LastID returns the last id that a serial table assigned, or 0.
	LastID(ctx context.Context, t *Table) (int64, error)

	// Checks returns the checks that only this engine needs.
	Checks() []Check

	Close() error
}

// Target fills a whole store in one transaction that keeps other writers out. As a
// [Source] it reads the rows written so far.
type Target interface {
	Source

	// Write adds rows. Their values are in the order of the table's columns.
	Write(ctx context.Context, t *Table, rows Cursor) error

	// SetLastID sets the last id that a serial table assigned, so that the next
	// one is higher.
	SetLastID(ctx context.Context, t *Table, id int64) error

	// Commit stores everything. Without a Commit before Close, or if Commit
	// returns an error other than ErrOutcomeUnknown, the store is unchanged.
	Commit(ctx context.Context) error
}

// Cursor iterates over rows.
type Cursor interface {
	// Next advances to the next row and reports whether there is one.
	Next() bool
	// Values returns the values of the row: int64, string, []byte or nil. They
	// are valid until the next call of Next.
	Values() ([]any, error)
	// Err returns the error that ended the iteration early, if any.
	Err() error
	Close()
}

// Check is a rule that holds in a consistent store.
type Check struct {
	Rule  string
	Query string // selects one line of text for each violation

	// Find returns the line of text for a row that Query selects, or "" if it is right. It
	// is nil if SQL can express the rule.
	Find func(row []any) string
}
