package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// fastPath is whether servers use package http1.
var fastPath = true

// TestWithoutFastPath_Slow repeats on net/http alone the tests that depend on how requests are
// read and responses are written.
func TestWithoutFastPath_Slow(t *testing.T) {
	fastPath = false
	t.Cleanup(func() { fastPath = true })
	for name, test := range map[string]func(*testing.T){
		"BodyOnTheWire": TestBodyOnTheWire,
		"FastPath":      TestFastPath,
		"Head":          TestHead,
		"Methods":       TestMethods,
		"Stream":        TestStream,
	} {
		t.Run(name, test)
	}
}

// TestFastPath: the setting decides whether package http1 or net/http serves a simple
// request.
func TestFastPath(t *testing.T) {
	s := start(t)
	var server any
	s.db.arm("Pets", func(ctx context.Context) error {
		server = ctx.Value(http.ServerContextKey) // which net/http alone sets
		return nil
	})
	s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
	if got := server == nil; got != fastPath {
		t.Errorf("got a request on the fast path: %t, want %t", got, fastPath)
	}
}

// disconnector is an observer that ends a request's context, as net/http does for
// a client that closes its half of the connection, when the request has passed
// the limiter.
type disconnector struct {
	witness
	disconnect context.CancelFunc
}

func (d *disconnector) Limited(animalstore.Code) {
	if d.disconnect != nil {
		d.disconnect()
	}
}

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
	conn.SetDeadline(time.Now().Add(testenv.Deadline))
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
