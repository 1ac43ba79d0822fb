package certs

import (
	"path/filepath"
	"testing"
)

// TestACMECache: only the owner may have access to a directory with private keys.
func TestACMECache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "cache")
	if err := prepareCache(dir); err != nil {
		t.Fatal(err)
	}
	if err := prepareCache(dir); err != nil {
		t.Errorf("a second start: %v", err)
	}
	open := t.TempDir() // mode 0755
	if err := prepareCache(open); err == nil {
		t.Error("a directory that others can read: got no error")
	}
}

func TestCheckDomain(t *testing.T) {
	for domain, ok := range map[string]bool{
		"shop.example": true, "192.0.2.1": false, "*.shop.example": false, "shop": false, "füchse.example": false,
	} {
		if err := CheckDomain(domain); (err == nil) != ok {
			t.Errorf("%s: got %v, want it accepted: %t", domain, err, ok)
		}
	}
}
