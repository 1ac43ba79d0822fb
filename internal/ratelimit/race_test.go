//go:build race

package ratelimit_test

// raceDetector is on: memory and time are several times what they are without it.
const raceDetector = true
