// Package pgtest starts PostgreSQL servers for tests, and puts them through what
// happens to servers: they are killed, frozen, restarted and promoted.
//
// The binaries are those on PATH or of the distribution. Where there are none a
// test is skipped, or fails when CI=true. Tests that only need a database take
// one of the server named by ANIMALSTORE_TEST_POSTGRES instead, if it is set.
package pgtest
