package certs

import (
	"path/filepath"
	"strings"
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
	if err := prepareCache(open); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory that others can read: got %v, want advice to run chmod 700", err)
	}
}

func TestCheckDomain(t *testing.T) {
	for domain, want := range map[string]string{ // part of the error; "" for none
		"shop.example":   "",
		"192.0.2.1":      "not a full domain name",
		"*.shop.example": "not a full domain name",
		"shop":           "not a full domain name",
		"füchse.example": "begins with xn--",
	} {
		err := CheckDomain(domain)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", domain, err, want)
		}
	}
}
