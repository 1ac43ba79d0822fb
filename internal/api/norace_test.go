//go:build !race

package api_test

const allPermissions = true
