package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A request that was due while the server stalled counts from then on, although there
// was no connection to send it on.
func TestSteadyMeasuresFromWhenRequestsAreDue(t *testing.T) {
	const stall = 100 * time.Millisecond
	var served atomic.Int64
	s := steadyServer(t, func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 1 {
			time.Sleep(stall)
		}
		if got, want := r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"), "POST /v1/pets Bearer secret"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		body := make([]byte, len(newPet)+1)
		if n, _ := r.Body.Read(body); string(body[:n]) != newPet {
			t.Errorf("got the body %q, want %q", body[:n], newPet)
		}
		w.Header().Set("Content-Length", "6")
		w.WriteHeader(http.StatusCreated)
		for _, half := range []string{"abc", "def"} { // in two packets
			fmt.Fprint(w, half)
			w.(http.Flusher).Flush()
		}
	})
	s.rate = 1000
	got, err := steadyTurn(t, s, "POST /v1/pets "+newPet)
	if err != nil {
		t.Fatal(err)
	}
	if got.requests != 200 || served.Load() != 200 {
		t.Errorf("got %d requests, the server %d; want 200 for 200 ms at 1,000 a second", got.requests, served.Load())
	}
	// The second to wait longest was due a millisecond after the first.
	if got.p99 < stall-10*time.Millisecond {
		t.Errorf("p99 is %v, want nearly %v: requests that had to wait aren't counted", got.p99, stall)
	}
}

func TestSteadyFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"an error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTooManyRequests) }, "429 Too Many Requests, not a success"},
		{"no length", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "without a length"},
		{"hung up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the connection ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := steadyServer(t, c.handle)
			s.rate = 100
			if _, err := steadyTurn(t, s, "GET /"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func steadyServer(t *testing.T, handle http.HandlerFunc) *server {
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return &server{name: "stub", key: "secret", addr: s.Listener.Addr().(*net.TCPAddr).String()}
}

// steadyTurn sends a request repeatedly for 200 ms, on one connection.
func steadyTurn(t *testing.T, s *server, request string) (turn, error) {
	file := filepath.Join(t.TempDir(), "requests")
	if err := os.WriteFile(file, []byte(request+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := runSteady(t.Context(), workload{connections: 1}, s, file, 200*time.Millisecond)
	return got, err
}
