package server

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// runInBubble runs a server with the timeouts of the product in a bubble of synctest.
func runInBubble(t *testing.T, change ...func(*Config)) (*running, testenv.Pipes) {
	t.Helper()
	cfg, network := localConfig(t), testenv.NewPipes()
	cfg.Listener, cfg.Timeouts, cfg.Hooks.NoBackground, cfg.Hooks.RequestTimeout = network, DefaultTimeouts, true, 0
	for _, f := range change {
		f(&cfg)
	}
	return run(t, cfg), network
}

// TestSlowClients: a client that never finishes its request can't hold its connection
// forever.
func TestSlowClients(t *testing.T) {
	for name, test := range map[string]struct {
		sent string
		want time.Duration
	}{
		"silent":        {"", 5 * time.Second},
		"half a header": {"GET /v1/pets HTTP/1.1\r\nHost: a\r\n", 5 * time.Second},
		"half a body":   {"POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{", 9 * time.Second},
		"idle":          {"GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n", 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, network := runInBubble(t)
				client := network.Connect()
				began := time.Now()
				if test.sent != "" { // a pipe would deliver an empty write
					io.WriteString(client, test.sent)
				}
				io.Copy(io.Discard, client)
				if took := time.Since(began); took < test.want || took > test.want+time.Second {
					t.Errorf("the connection was closed after %v, want %v", took, test.want)
				}
				client.Close()
			})
		})
	}
}

// TestWaitingPastTheTimeout: a request for events may wait longer than others may take to
// arrive, but gets its response in time if the body that it announces never comes.
func TestWaitingPastTheTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		request string
		want    time.Duration
	}{
		"poll":                 {"GET /v1/events?after=latest&wait=30 HTTP/1.1\r\n", 30 * time.Second},
		"poll with a body":     {"GET /v1/events?after=latest&wait=2 HTTP/1.1\r\nContent-Length: 9\r\n", DefaultTimeouts.Read},
		"stream with a body":   {"GET /v1/events HTTP/1.1\r\nAccept: text/event-stream\r\nContent-Length: 9\r\n", DefaultTimeouts.Read},
		"anything with a body": {"GET /v1/pets HTTP/1.1\r\nContent-Length: 9\r\n", DefaultTimeouts.Read},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network := runInBubble(t)
				owner, err := s.CreateOwnerKey(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				client := network.Connect()
				defer client.Close()
				client.SetReadDeadline(time.Now().Add(time.Minute))
				began := time.Now()
				io.WriteString(client, test.request+"Host: a\r\nAuthorization: Bearer "+owner.Secret+"\r\n\r\n")
				res, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("got %v, %v", res, err)
				}
				if took := time.Since(began); took < test.want || took > test.want+time.Second {
					t.Errorf("got the response after %v, want %v", took, test.want)
				}
			})
		})
	}
}

// slowly is a body that arrives in pieces.
type slowly struct {
	rest  []byte
	piece int
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	time.Sleep(5 * time.Second)
	n := copy(p[:min(len(p), s.piece)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// TestSlowUpload: a picture may take longer to arrive than any other request, and its
// response longer than others.
func TestSlowUpload(t *testing.T) {
	picture := phototest.JPEG(phototest.Drawing(300, 200))
	synctest.Test(t, func(t *testing.T) {
		s, network := runInBubble(t)
		req := uploadRequest(t, s, "http://store.test")
		req.Body = io.NopCloser(&slowly{picture, len(picture)/8 + 1})
		transport := &http.Transport{DialContext: network.Dial}
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusCreated || !bytes.Contains(body, []byte(`"width":300`)) {
			t.Errorf("got %d %s, %v, want 201", res.StatusCode, body, err)
		}
	})
}
