//go:build race

package ratelimit_test

// raceDetector is on: memory and time cost several times what they do without.
const raceDetector = true
