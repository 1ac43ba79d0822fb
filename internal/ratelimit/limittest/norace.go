//go:build !race

package limittest

const RaceDetector = false
