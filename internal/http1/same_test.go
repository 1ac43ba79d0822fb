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
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
func listen(t testing.TB, server *http.Server) *Listener {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(tcp, server, anyTarget, discard)
	serve(t, server, l)
	return l
}

// serve serves on l until the test ends.
func serve(t testing.TB, server *http.Server, l *Listener) {
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
}

// echo responds with everything it sees of a request. It counts the requests that
// were served without net/http.
type echo struct{ plain atomic.Int64 }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := w.(*writer); ok {
		e.plain.Add(1)
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

// same compares a server behind this package with one that only uses net/http.
type same struct {
	here, there string // their addresses
	echo        *echo
}

func newSame(t testing.TB) *same {
	e := &echo{}
	there := httptest.NewUnstartedServer(&echo{})
	there.Config = newServer(there.Config.Handler)
	there.Start()
	t.Cleanup(there.Close)
	return &same{listen(t, newServer(e)).Addr().String(), there.Listener.Addr().String(), e}
}

// check sends the pieces to both and compares their responses.
func (s *same) check(t testing.TB, pieces ...string) {
	t.Helper()
	var got, want string
	for range 20 {
		var gotAll, wantAll bool
		got, gotAll = talk(t, s.here, pieces)
		want, wantAll = talk(t, s.there, pieces)
		if got == want || gotAll && wantAll {
			break
		}
	}
	if got != want {
		t.Errorf("%.500q\ngot  %s\nwant %s", pieces, got, want)
	}
}

// talk sends the pieces and returns the responses. all is false if some may be
// missing: a client that keeps sending to a closed connection can lose responses it
// hasn't read yet.
func talk(t testing.TB, addr string, pieces []string) (responses string, all bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	go func() {
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(time.Millisecond) // so that it is read separately
			}
			if _, err := io.WriteString(c, piece); err != nil {
				return // the server closed the connection
			}
		}
		c.(*net.TCPConn).CloseWrite()
	}()
	for br := bufio.NewReaderSize(c, 64<<10); ; {
		text, err := readResponse(br)
		if text != "" {
			responses += text + "\n"
		}
		if err != nil {
			return responses, !errors.Is(err, syscall.ECONNRESET)
		}
	}
}

// readResponse reads a response and formats it without the parts that may differ:
// the order of fields, the date and how the end of the body is marked.
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

// conversations are what clients might send on one connection, with the number of
// requests that are plain.
var conversations = []struct {
	text  string
	plain int64
}{
	{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	{"GET /x/y-z_1.2~?a=b&c=%20 HTTP/1.1\r\nHost: localhost:80\r\nAccept: */*\r\nx-a:  b \t\r\nX-A: c\r\nX-Empty:\r\n\r\n", 1},
	{"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	{"PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nPUT / HTTP/1.1\r\nHost: a\r\ncontent-length: 1\r\n\r\nxDELETE /x HTTP/1.1\r\nHost: a\r\n\r\n", 3},
	{"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /x HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", 1},
	{"GET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /big HTTP/1.1\r\nHost: a\r\n\r\nGET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /twice HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\nGET /split HTTP/1.1\r\nHost: a\r\n\r\n", 7},
	{"GET /close HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	// Old browsers end a body with an empty line. It isn't allowed anywhere else.
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\n\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	{"HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\nHEAD /204 HTTP/1.1\r\nHost: a\r\n\r\n", 2},
	// The same fields again, and different ones.
	{"GET /a HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nX: 2\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\n", 4},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nonePOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ntwoGET / HTTP/1.1\r\nHost: a\r\n\r\n", 3},
	// After a request that isn't plain, no request is.
	{"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /%61 HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nhi", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nhi", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nhi", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nhi", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nnot all", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", 0},
	{"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: \r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: ä\r\n\r\n", 0},
	{"GET / HTTP/1.1\nHost: a\n\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 0},
	{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / x HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET /? HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET //a HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET http://b/a HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"get / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 0},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
	{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0},
	{"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\n\r\ngarbage\r\n\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n", 0},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 50000) + "\r\n\r\n", 0},
	{"GET /" + strings.Repeat("x", 5000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 5000) + "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	// The fifth doesn't fit into the buffer.
	{strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 900)+"\r\n\r\n", 20), 4},
	{"", 0},
}

// TestSame compares every response with net/http's.
func TestSame(t *testing.T) {
	s := newSame(t)
	for _, c := range conversations {
		s.echo.plain.Store(0)
		s.check(t, c.text)
		if got := s.echo.plain.Load(); got != c.plain {
			t.Errorf("%.200q\n%d requests were served as plain, want %d", c.text, got, c.plain)
		}
	}
}

// TestSameInPieces sends each conversation in two pieces, split at many places.
func TestSameInPieces(t *testing.T) {
	s := newSame(t)
	for _, c := range conversations {
		if len(c.text) > 300 {
			continue
		}
		for i := 1; i < len(c.text); i += 1 + len(c.text)/40 {
			s.check(t, c.text[:i], c.text[i:])
		}
	}
}

// TestSameRandom combines conversations from good and bad parts.
func TestSameRandom(t *testing.T) {
	s := newSame(t)
	for start := time.Now(); time.Since(start) < 2*time.Second && !t.Failed(); {
		var text string
		for range 1 + rand.IntN(4) {
			text += randomRequest()
		}
		i := rand.IntN(len(text))
		s.check(t, text)
		s.check(t, text[:i], text[i:])
	}
}

// randomRequest returns a request, which sometimes has a mistake in it.
func randomRequest() string {
	some := func(of ...string) string { return of[rand.IntN(len(of))] }
	seldom := func(usual string, of ...string) string {
		if rand.IntN(12) == 0 {
			return some(of...)
		}
		return usual
	}
	end := func() string { return seldom("\r\n", "\n", "\r", "\r\r\n", "\n\r\n", " \r\n") }
	body := strings.Repeat("b", rand.IntN(6))
	lines := []string{"Host: a"}
	for range rand.IntN(4) {
		lines = append(lines, some("X: y", "x:  y ", "X:", "Accept: */*", "Connection: keep-alive", "connection:Keep-Alive",
			"Connection: close", "Connection: keep-alive, close", "Host: b", "Transfer-Encoding: chunked", "transfer-encoding: identity",
			"Transfer-Encoding:", "Te: trailers", "Content-Length: 0", "Content-Length: 00", "Content-Length: 1", "Content-Length: -0",
			"Content-Length: 1_0", "Content-Length: 0x1", "Expect: 100-continue", "Expect:", "X-\x7f: y", "X: \x80", " folded",
			"\tfolded: x", "a b: c", "!#$%&'*+-.^_`|~: ok", "Pragma: no-cache", "Trailer: X", "Upgrade: h2c", "Keep-Alive: 5",
			"Proxy-Connection: close", "1: 2", ": x", "X: a\tb", "Cookie: a=b; c=d"))
	}
	if body != "" || rand.IntN(3) == 0 {
		lines = append(lines, seldom("Content-Length", "content-length", "Content-length ", "CONTENT-LENGTH")+
			seldom(": ", ":", " : ", ":\t")+fmt.Sprint(len(body))+seldom("", " ", ", 1", "a", "\t"))
	}
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	text := some("GET", "POST", "POST", "HEAD", "PUT", "DELETE", seldom("PATCH", "OPTIONS", "get", "CONNECT", "TRACE", "G=T")) +
		seldom(" ", "  ", "\t", "") +
		some("/", "/a", "/204", "/304", "/a/../b", "/a//b", "/a;b", "/%41", "/?x", "/?", "/a?b?c", "//x", "/a?%zz", "/a?b=c&d", "/a?\"<>|", "/nothing", "/.", "/:", "/a?x#y") +
		" " + seldom("HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/1.1 ", "http/1.1", "HTTP/01.1") + end()
	for _, line := range lines {
		text += line + end()
	}
	return text + end() + body
}

func FuzzSame(f *testing.F) {
	for _, c := range conversations {
		f.Add(c.text)
	}
	s := newSame(f)
	f.Fuzz(func(t *testing.T, text string) {
		s.check(t, text)
		if i := len(text) / 2; i > 0 {
			s.check(t, text[:i], text[i:])
		}
	})
}
