package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/testenv"
)

// newServer returns a server with the timeouts of the product.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    12 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
}

func anyTarget(string) bool { return true }

var discard = slog.New(slog.DiscardHandler)

// listen serves on a free port until the test ends.
func listen(t testing.TB, server *http.Server) *Server {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewServer(tcp, server, anyTarget, discard)
	serve(t, l)
	return l
}

// serve serves on l until the test ends.
func serve(t testing.TB, l *Server) {
	done := make(chan error, 1)
	go func() { done <- l.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Deadline)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
}

// echo responds with everything it sees of a request. It counts the requests served
// without net/http.
type echo struct{ simple atomic.Int64 }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := w.(*writer); ok {
		e.simple.Add(1)
	}
	body, err := io.ReadAll(r.Body)
	h := w.Header()
	h.Set("X-Method", r.Method)
	h["X-RateLimit-Limit"] = []string{"two", "values"}
	h.Set("Content-Type", "text/plain")
	switch r.URL.Path {
	case "/204":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/304":
		h.Set("ETag", `"x"`)
		w.WriteHeader(http.StatusNotModified)
		return
	case "/nothing":
		return
	case "/close":
		h.Set("Connection", "close")
	case "/split":
		h.Set("X-Split", "a\r\nb: c")
	case "/big":
		h.Set("Content-Length", "200000")
		w.WriteHeader(http.StatusAccepted)
		for range 200 {
			w.Write(bytes.Repeat([]byte("x"), 1000))
		}
		return
	case "/twice":
		w.WriteHeader(http.StatusTeapot)
		h.Set("X-Late", "too late")
		w.WriteHeader(http.StatusOK)
	}
	fmt.Fprintf(w, "%s %s %s %d.%d\n", r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor)
	fmt.Fprintf(w, "%q %q %q %v\n", r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.URL.ForceQuery)
	fmt.Fprintf(w, "%q %d %v %v %v\n", r.Host, r.ContentLength, r.TransferEncoding, r.Close, r.Trailer)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
	}
	fmt.Fprintf(w, "%q %v\n", body, err)
}

// same compares a server of this package with one that uses only net/http.
type same struct {
	here, there testenv.Pipes
	echo        *echo
}

// newSame starts both servers in a synctest bubble.
func newSame(t *testing.T) *same {
	s := &same{testenv.NewPipes(), testenv.NewPipes(), &echo{}}
	serve(t, NewServer(s.here, newServer(s.echo), anyTarget, discard))
	there := newServer(&echo{})
	go there.Serve(s.there)
	t.Cleanup(func() { there.Close() })
	return s
}

// check sends the pieces to both servers and compares their responses.
func (s *same) check(t *testing.T, pieces ...string) {
	t.Helper()
	if got, want := talk(s.here, pieces...), talk(s.there, pieces...); got != want {
		t.Errorf("%.500q\ngot  %.9000s\nwant %.9000s", pieces, got, want)
	}
}

// readResponse reads a response and formats it without the parts that may differ: the
// order of fields, the date, and how the end of the body is marked.
func readResponse(br *bufio.Reader) (string, error) {
	method := http.MethodGet
	for n := 1; ; n++ {
		head, err := br.Peek(n)
		if err != nil {
			return "", err
		}
		n = max(n, br.Buffered()-1)
		if bytes.Contains(head, []byte("\r\n\r\n")) {
			if bytes.Contains(head[:bytes.Index(head, []byte("\r\n\r\n"))], []byte("\r\nX-Method: HEAD")) {
				method = http.MethodHead
			}
			break
		}
	}
	res, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(res.Body)
	if _, err := time.Parse(http.TimeFormat, res.Header.Get("Date")); err != nil && res.StatusCode < 400 {
		return "a response with a bad date", err
	}
	delete(res.Header, "Date")
	if method != http.MethodHead {
		delete(res.Header, "Content-Length")
	}
	if len(body) > 4<<10 {
		body = fmt.Appendf(nil, "%d bytes, sum %x", len(body), sha256.Sum256(body))
	}
	return fmt.Sprintf("%s %v close=%v %q", res.Status, res.Header, res.Close, body), err
}

// TestSame compares every response with net/http's.
func TestSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSame(t)
		for _, c := range conversations {
			s.echo.simple.Store(0)
			s.check(t, c.text)
			if got := s.echo.simple.Load(); got != c.simple {
				t.Errorf("%.200q\n%d requests were served as simple, want %d", c.text, got, c.simple)
			}
		}
	})
}

// TestSameInPieces sends each conversation in two pieces, split at many places.
func TestSameInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSame(t)
		for _, c := range conversations {
			if len(c.text) > 300 {
				continue
			}
			step := 1 + len(c.text)/testenv.Count(4, 40)
			for i := 1; i < len(c.text); i += step {
				s.check(t, c.text[:i], c.text[i:])
			}
		}
	})
}

// TestSameRandom builds conversations from valid and invalid parts.
func TestSameRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSame(t)
		for range testenv.Count(100, 5000) {
			var text string
			for range 1 + rand.IntN(4) {
				text += randomRequest()
			}
			i := rand.IntN(len(text))
			s.check(t, text)
			s.check(t, text[:i], text[i:])
		}
	})
}

// TestSameHeadLength: a response to HEAD states the body's length up to a certain size.
func TestSameHeadLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSame(t)
		for size := 1950; size < 2060; size++ {
			s.check(t, "HEAD / HTTP/1.1\r\nHost: "+strings.Repeat("a", size)+"\r\n\r\n")
		}
	})
}

// FuzzSame is run before each release. Longer conversations can differ: how much net/http
// reads at once, before a refusal or its limit of the header, depends on how the bytes
// arrive, and they arrive differently after a handover.
func FuzzSame(f *testing.F) {
	for _, c := range conversations {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxSimple {
			return // longer than the buffer
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSame(t)
			s.check(t, text)
			if i := len(text) / 2; i > 0 {
				s.check(t, text[:i], text[i:])
			}
		})
	})
}
