package api_test

import (
	"context"
	"crypto/tls"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// fastPath is whether servers use package http1. With
// ANIMALSTORE_API_FAST_PATH=false the whole suite runs on net/http alone. A full
// run repeats a part of the suite that way.
var fastPath = os.Getenv("ANIMALSTORE_API_FAST_PATH") != "false"

// withoutFastPath are the tests that a full run repeats on net/http alone: those
// that compare every operation, status and header with the contract, over a network.
const withoutFastPath = "^(TestAddPet|TestBodyOnTheWire|TestCORS|TestETags|TestEveryOperation|TestFastPath|TestHead|TestMethods|TestRequestID)$"

// runWithoutFastPath repeats a part of the suite on net/http alone.
func runWithoutFastPath(m *testing.M) int {
	defer func(before bool, filter string) {
		fastPath = before
		flag.Set("test.run", filter)
	}(fastPath, flag.Lookup("test.run").Value.String())
	fastPath = false
	flag.Set("test.run", withoutFastPath)
	return m.Run()
}

// TestFastPath: the setting decides whether package http1 or net/http serves a
// plain request, also over TLS. HTTP/2 is always net/http's.
func TestFastPath(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certificates := certified.TLS.Certificates
	certified.Close()
	for name, config := range map[string]*tls.Config{
		"HTTP/1.1":          nil,
		"HTTP/1.1 over TLS": {Certificates: certificates, NextProtos: []string{"http/1.1"}},
		"HTTP/2":            {Certificates: certificates, NextProtos: []string{"h2", "http/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(with *setup) { with.tls = config })
			var server any
			s.db.arm("Pets", func(ctx context.Context) error {
				server = ctx.Value(http.ServerContextKey) // which net/http alone sets
				return nil
			})
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
			if got, want := server == nil, fastPath && name != "HTTP/2"; got != want {
				t.Errorf("got a request on the fast path: %t, want %t", got, want)
			}
		})
	}
}
