// Package transfer works on a whole store at once, in any engine: it moves a store
// from one database to another and checks that a store is consistent. Engines
// implement [db.Source] and [db.Target]; nothing here knows which one it is.
package transfer
