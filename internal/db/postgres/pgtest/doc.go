// Package pgtest starts PostgreSQL servers for tests, and can kill, freeze, restart and
// promote them. It also starts PgBouncer.
//
// It uses the binaries on PATH or of the distribution. Without any, a test is skipped,
// or fails if CI=true.
package pgtest
