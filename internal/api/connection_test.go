package api_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// fastPath is whether servers use package http1.
var fastPath = true

// TestFastPath: the setting decides whether package http1 or net/http serves a
// simple request. TLS is always net/http's.
func TestFastPath(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certificates := certified.TLS.Certificates
	certified.Close()
	for name, config := range map[string]*tls.Config{
		"HTTP/1.1": nil,
		"TLS":      {Certificates: certificates, NextProtos: []string{"http/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(with *setup) { with.tls = config })
			var server any
			s.db.arm("Pets", func(ctx context.Context) error {
				server = ctx.Value(http.ServerContextKey) // which net/http alone sets
				return nil
			})
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
			if got, want := server == nil, fastPath && config == nil; got != want {
				t.Errorf("got a request on the fast path: %t, want %t", got, want)
			}
		})
	}
}

// TestHalfClosedClient: a client that has closed its sending half still waits for
// its responses, one for each request that it pipelined, and its changes are made.
// net/http may give up a read.
func TestHalfClosedClient(t *testing.T) {
	s := start(t)
	const body = `{"name":"Rex","categoryId":7}`
	post := fmt.Sprintf("POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", s.owner, len(body), body)
	get := fmt.Sprintf("GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", s.owner)
	for name, requests := range map[string]string{
		"one change":              post,
		"changes":                 strings.Repeat(post, 5),
		"reads":                   strings.Repeat(get, 5),
		"both":                    strings.Repeat(post+get, 5),
		"more than one buffer":    strings.Repeat(post, 40),
		"the last is not simple":  get + post + strings.Replace(post, "Host: x", "Host: x\r\nPragma: x", 1),
		"the first is not simple": strings.Replace(post, "Host: x", "Host: x\r\nPragma: x", 1) + post + post,
		"the last closes it":      post + strings.Replace(post, "Host: x", "Host: x\r\nConnection: close", 1),
		"a change not in a piece": post + post[:len(post)-10] + "|" + post[len(post)-10:],
	} {
		t.Run(name, func(t *testing.T) {
			methods := regexp.MustCompile("(?:GET|POST) /v1").FindAllString(requests, -1)
			want := len(methods)
			for range 10 {
				conn, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Fatal(err)
				}
				for piece := range strings.SplitSeq(requests, "|") {
					io.WriteString(conn, piece)
				}
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				br := bufio.NewReader(conn)
				for i := range want {
					res, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Fatalf("response %d of %d: %v", i+1, want, err)
					}
					_, err = io.Copy(io.Discard, res.Body)
					// net/http can't tell whether the client has left.
					givenUp := !fastPath && res.StatusCode == http.StatusServiceUnavailable && methods[i] == "GET /v1"
					if err != nil || res.StatusCode/100 != 2 && !givenUp {
						t.Errorf("response %d of %d: got %d, %v, want success", i+1, want, res.StatusCode, err)
					}
				}
				conn.Close()
			}
		})
	}
}

// disconnector is an observer that ends a request's context, as net/http does for
// a client that closes its half of the connection, when the request has passed
// the limiter.
type disconnector struct{ disconnect context.CancelFunc }

func (d *disconnector) Limited(animalstore.Code) {
	if d.disconnect != nil {
		d.disconnect()
	}
}

func (d *disconnector) Begin()                                 {}
func (d *disconnector) End(string, string, int, time.Duration) {}
func (d *disconnector) Failed(animalstore.Code)                {}

// TestChangeAfterDisconnect: a change is made even if its client disconnects after
// something has waited for the request's context. It needs no body, whose
// reading would start a new timer.
func TestChangeAfterDisconnect(t *testing.T) {
	observer := &disconnector{}
	s := start(t, func(with *setup) { with.observer = observer })
	pet := s.addOne(t, animalstore.PetAvailable)
	_, keyID := s.makeKey(t, "a-key-that-was-made-elsewhere")
	s.db.arm("LimitState", func(ctx context.Context) error {
		ctx.Done() // as a database does that waits
		return nil
	})
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{"POST", fmt.Sprintf("/v1/keys/%d/unban", keyID), http.StatusOK},
		{"DELETE", fmt.Sprintf("/v1/keys/%d", keyID), http.StatusNoContent},
		{"DELETE", petPath(pet.ID), http.StatusNoContent},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			secret := s.key(t, everything) // whose limits are not in memory yet
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer.disconnect = cancel
			req := httptest.NewRequestWithContext(ctx, test.method, test.path, http.NoBody)
			req.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, req)
			if ctx.Err() == nil {
				t.Fatal("the client did not disconnect")
			}
			if w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}

// raw sends text over a new connection and returns the first response,
// which is held to the document.
func (s *service) raw(t testing.TB, text string) response {
	t.Helper()
	return s.rawEnd(t, text, false)
}

// rawEnd does the same and, if cut, closes the sending side after text.
func (s *service) rawEnd(t testing.TB, text string, cut bool) response {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if cut {
		conn.(*net.TCPConn).CloseWrite()
	}
	line, _, _ := strings.Cut(text, "\r\n")
	method, rest, _ := strings.Cut(line, " ")
	target, _, _ := strings.Cut(rest, " ")
	var wire bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &wire)), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	if res.Close { // ReadResponse takes the header away
		res.Header.Set("Connection", "close")
	}
	e := exchange{method: method, url: u, status: res.StatusCode, answered: res.Header, body: body, now: s.clock.Now()}
	if err := errors.Join(e.check(), wireSpelling(u.Path, rawHeader(wire.String()))); err != nil {
		t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, body}
}

// rawHeader is the header of a response with its names as they were sent.
func rawHeader(wire string) http.Header {
	head, _, _ := strings.Cut(wire, "\r\n\r\n")
	h := http.Header{}
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h[name] = append(h[name], value)
		}
	}
	return h
}
