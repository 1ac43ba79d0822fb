// Package transfer works on a whole store at once, in any engine: it moves a store from
// one database to another, checks that a store is consistent, backs up and restores a
// store's file, and loads many rows. Engines implement [db.Source], [db.Target],
// [db.Bulk] and [Files]; nothing here depends on a particular engine.
package transfer
