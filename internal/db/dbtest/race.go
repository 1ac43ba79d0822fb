//go:build race

package dbtest

// RaceDetector is on: SQLite takes several times as long with it.
const RaceDetector = true
