// Package transfer works on a whole store at once, in any engine: it moves a store
// from one database to another, checks that a store is consistent, and loads many
// rows. Engines implement [db.Source], [db.Target] and [db.Bulk]; nothing here knows
// which one it is.
package transfer
