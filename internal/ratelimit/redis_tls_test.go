package ratelimit_test

import (
	"net"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

// TestRedisOverTLS: rediss:// encrypts and verifies the server's certificate.
func TestRedisOverTLS(t *testing.T) {
	cert, key := redistest.SelfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	for _, c := range []struct {
		url      string
		fallback bool
	}{
		{"rediss://" + addr + "?skip_verify=true", false},
		{"rediss://" + addr, true}, // not signed by a trusted authority
		{"redis://" + addr, true},  // in clear text
	} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: c.url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := fallsBack(t, r, c.fallback); got != c.fallback {
			t.Errorf("%s: got fallback %v, want %v", c.url, got, c.fallback)
		}
	}
}
