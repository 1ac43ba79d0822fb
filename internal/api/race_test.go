//go:build race

package api_test

// allPermissions is whether the test of every operation by every key tries every set
// of permissions. The race detector makes that slow.
const allPermissions = false
