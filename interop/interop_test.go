package main

import (
	"os/exec"
	"testing"

	"animalstore/internal/testenv"
)

// TestQuickClients runs the clients that need only Go or npm, so that a client that
// doesn't compile is found before somebody runs make interop.
func TestQuickClients(t *testing.T) {
	testenv.Slow(t)
	t.Chdir("..")
	quick := []string{"oapi-codegen"}
	if _, err := exec.LookPath("npm"); err == nil {
		quick = append(quick, "openapi-fetch")
	}
	if err := run(t.Context(), quick); err != nil {
		t.Fatal(err)
	}
}
