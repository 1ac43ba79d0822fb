// Package transfer works on a whole store at once, in any engine: it moves a store
// from one database to another, checks that a store is consistent, backs up and
// restores the file of one, and loads many rows. Engines implement [db.Source],
// [db.Target], [db.Bulk] and [Files]; nothing here knows which one it is.
package transfer
