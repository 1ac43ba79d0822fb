package server

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCertificateSwapsUnderLoad: a hundred certificates, one after the other, and no
// request fails, whether on a new connection or an open one, in HTTP/1.1 or HTTP/2.
func TestCertificateSwapsUnderLoad(t *testing.T) {
	const swaps = 100
	dir := t.TempDir()
	newPair(t, 1, time.Hour).write(t, dir)
	s, err := New(t.Context(), Config{
		Database:         "sqlite:" + filepath.Join(dir, "store.db"),
		Listen:           "127.0.0.1:0",
		CertFile:         filepath.Join(dir, "cert.pem"),
		KeyFile:          filepath.Join(dir, "key.pem"),
		CertificateCheck: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	var requests atomic.Int64
	var clients sync.WaitGroup
	load, endLoad := context.WithCancel(context.Background())
	for i := range 4 {
		clients.Go(func() {
			transport := &http.Transport{
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
				DisableKeepAlives: i%2 == 0,
				ForceAttemptHTTP2: i >= 2,
			}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for load.Err() == nil {
				res, err := client.Get(s.URL() + "/livez")
				if err != nil {
					t.Errorf("request failed: %v", err)
					return
				}
				if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
					t.Errorf("got %s, %v, want 200", res.Status, err)
				}
				res.Body.Close()
				requests.Add(1)
			}
		})
	}
	for i := range int64(swaps) {
		next := newPair(t, 2+i, time.Hour)
		next.write(t, dir)
		for deadline := time.Now().Add(10 * time.Second); serialOf(t, s.Addr().String()) != next.serial; {
			if time.Now().After(deadline) {
				t.Fatalf("certificate %d isn't used after 10 s", next.serial)
			}
			time.Sleep(time.Millisecond)
		}
	}
	endLoad()
	clients.Wait()
	t.Logf("%d requests during %d swaps", requests.Load(), swaps)
	if requests.Load() < swaps {
		t.Errorf("got %d requests, want at least one for each swap", requests.Load())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// serialOf is the serial number of the certificate that a new connection gets.
func serialOf(t *testing.T, addr string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	return leaf.SerialNumber.Int64()
}
