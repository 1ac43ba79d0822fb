//go:build race

package api_test

// raceDetector is on: everything takes several times as long.
const raceDetector = true
