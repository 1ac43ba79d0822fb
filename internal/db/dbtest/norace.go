//go:build !race

package dbtest

const RaceDetector = false
