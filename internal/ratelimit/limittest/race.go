//go:build race

package limittest

// RaceDetector is on: memory and time are several times what they are without it.
const RaceDetector = true
