package server_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is a bytes.Buffer that can be read while a server writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(b.b.String(), "\n")
}

// TestErrorLog: a panic in a request that net/http serves is an error in the log;
// what clients get wrong isn't.
func TestErrorLog(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	logged := &lockedBuffer{}
	cfg := localConfig(t)
	cfg.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.TLS = &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	cfg.Middleware = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") })
	}
	s := run(t, cfg)

	http1, http2 := new(http.Protocols), new(http.Protocols)
	http1.SetHTTP1(true)
	http2.SetHTTP2(true)
	for _, protocols := range []*http.Protocols{http1, http2} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protocols}
		client := http.Client{Transport: transport}
		if res, err := client.Get(s.URL()); err == nil {
			res.Body.Close()
			t.Errorf("%v: got %s, want no response", protocols, res.Status)
		}
		transport.CloseIdleConnections()
	}
	stranger, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	stranger.Write([]byte("not TLS\r\n\r\n"))

	for _, want := range []string{
		`level=ERROR msg="http: panic serving `,
		`level=ERROR msg="http2: panic serving `,
		`level=DEBUG msg="http: TLS handshake error `,
	} {
		found := func() bool {
			for _, line := range logged.lines() {
				if strings.Contains(line, want) && strings.Contains(line, "a mistake") == strings.Contains(want, "panic") {
					return true
				}
			}
			return false
		}
		for deadline := time.Now().Add(wait); !found(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("got log\n%s\nwant %s in it", strings.Join(logged.lines(), "\n"), want)
			}
		}
	}
	s.stop()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}
