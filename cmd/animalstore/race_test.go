//go:build race

package main

// raceDetector is on: SQLite is many times slower with it.
const raceDetector = true
