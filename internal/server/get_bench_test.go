package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"

	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/http1"
	"animalstore/internal/keys"
	"animalstore/internal/server"
)

// BenchmarkGet is what a get costs except for what the operating system does: requests
// arrive on a connection that is none. Keys and pets are taken in turn.
func BenchmarkGet(b *testing.B) {
	const pets, manyKeys = 60_000, 10_000
	path := filepath.Join(b.TempDir(), "store.db")
	secrets := fillStore(b, path, pets, manyKeys)
	s, err := server.New(b.Context(), server.Config{
		Database: "sqlite:" + path, Listen: "127.0.0.1:0", OpsListen: "127.0.0.1:0", NoBackground: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for _, c := range []struct{ keys, pets int }{{1, 1}, {1, 5_000}, {manyKeys, 5_000}, {1, 50_000}} {
		b.Run(fmt.Sprintf("%d keys, %d pets", c.keys, c.pets), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			requests := make([]string, max(c.keys, c.pets))
			for i := range requests {
				requests[i] = fmt.Sprintf("GET /v1/pets/%d HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n\r\n",
					1+random.IntN(c.pets), secrets[i%c.keys])
			}
			send(b, s.Handler(), requests[:1], 1)
			if err := s.Save(b.Context()); err != nil { // pets aren't cached before the first commit
				b.Fatal(err)
			}
			send(b, s.Handler(), requests, 3*len(requests)) // fills the caches
			b.ReportAllocs()
			b.ResetTimer()
			send(b, s.Handler(), requests, b.N)
		})
	}
}

// fillStore creates a store with pets and keys, and returns the keys.
func fillStore(b *testing.B, path string, pets, manyKeys int) (secrets []string) {
	b.Helper()
	store, err := sqlite.Open(b.Context(), path, sqlite.Options{Serve: true, Tuning: sqlite.Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range pets {
		if _, _, err := store.CreatePet(b.Context(), animalstore.NewPet{Name: fmt.Sprint("Rex the dog ", i), CategoryID: 7}, nil); err != nil {
			b.Fatal(err)
		}
	}
	key := animalstore.NewKey{Name: "k", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 1e9, PerDay: 1e9}, Permissions: animalstore.Read, Environment: animalstore.Production}
	for range manyKeys {
		secret := keys.Mint(key.Environment)
		if _, err := store.CreateKey(b.Context(), key, keys.Hash(secret), animalstore.Time{}); err != nil {
			b.Fatal(err)
		}
		secrets = append(secrets, secret)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	return secrets
}

// send sends requests in turn, n in all, on one connection.
func send(b *testing.B, handler http.Handler, requests []string, n int) {
	b.Helper()
	c := &replay{left: n, requests: requests, closed: make(chan struct{})}
	l := http1.Listen(&oneConn{conn: c}, nil, &http.Server{Handler: handler}, api.Plain, slog.New(slog.DiscardHandler))
	<-c.closed
	l.Close()
	if c.left >= 0 || c.failed > 0 {
		b.Fatalf("%d requests are left, %d failed", c.left, c.failed)
	}
}

// oneConn is a listener with one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	c := l.conn
	l.conn = nil
	return c, nil
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// replay is a connection on which requests arrive in turn until none is left.
type replay struct {
	net.Conn
	left, failed int
	requests     []string
	closed       chan struct{}
}

func (c *replay) Read(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, io.EOF
	}
	return copy(p, c.requests[c.left%len(c.requests)]), nil
}

func (c *replay) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 200 ")) {
		c.failed++
	}
	return len(p), nil
}

func (c *replay) Close() error                     { close(c.closed); return nil }
func (c *replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *replay) SetReadDeadline(time.Time) error  { return nil }
func (c *replay) SetWriteDeadline(time.Time) error { return nil }
