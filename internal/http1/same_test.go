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
	"testing"
	"time"

	"animalstore/internal/testenv"
)

const maxHeader = 12 << 10

// newServer returns a server with the timeouts of the product.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
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
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
	here, there string // their addresses
	echo        *echo
}

// newSame starts both servers.
func newSame(t testing.TB) *same {
	e := &echo{}
	there := httptest.NewUnstartedServer(&echo{})
	there.Config = newServer(there.Config.Handler)
	there.Start()
	t.Cleanup(there.Close)
	return &same{listen(t, newServer(e)).inner.Addr().String(), there.Listener.Addr().String(), e}
}

// talk sends the pieces to one of the servers.
func (s *same) talk(t testing.TB, addr string, pieces []string) (responses string, end ending) {
	t.Helper()
	return talk(t, dialAddr(t, addr), pieces)
}

// check sends the pieces to both servers and compares their responses.
func (s *same) check(t testing.TB, pieces ...string) {
	t.Helper()
	var got, want string
	var gotEnd, wantEnd ending
	cut := false  // responses of net/http were cut off
	longest := "" // of got, if it was cut off: a reset can lose any responses that weren't read yet
	for range 20 {
		got, gotEnd = s.talk(t, s.here, pieces)
		want, wantEnd = s.talk(t, s.there, pieces)
		if got == want || gotEnd == complete && wantEnd == complete {
			break
		}
		if gotEnd != complete && len(got) > len(longest) && strings.HasPrefix(want, got) {
			longest = got
		}
		// A server that finds a mistake closes the connection after half a second,
		// whether or not the response has been read. On a busy machine that cuts off
		// large responses nearly every time, including net/http's, and then there is
		// nothing to compare with.
		cut = cut || wantEnd == cutOff
		if cut && (wantEnd == cutOff && strings.HasPrefix(got, want) || gotEnd == cutOff && strings.HasPrefix(want, got)) {
			want = got
		}
	}
	text := strings.Join(pieces, "")
	switch {
	case got == want, s.differsInLimitOnly(t, text, got, want):
	case gotEnd != complete && strings.HasPrefix(longest, got) && s.losesRefusal(t, text, longest, want):
	default:
		t.Errorf("%.500q\ngot  %.9000s\nwant %.9000s", pieces, got, want)
	}
}

// differsInLimitOnly reports whether the responses differ only because net/http doesn't
// count bytes it has already read against its header limit. If a request with an
// oversized header is sent together with the request before it, net/http may read more
// of it than if it is sent alone, and respond with something other than 431. How much
// it reads depends on how the bytes arrive, and they arrive differently after a
// handover.
//
// That is the case if both are equal up to that request, one of the two then responds
// with 431, and so does net/http if the request is sent alone.
func (s *same) differsInLimitOnly(t testing.TB, text, got, want string) bool {
	t.Helper()
	gotLines, wantLines := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	served := 0
	for served < min(len(gotLines), len(wantLines)) && gotLines[served] == wantLines[served] {
		served++
	}
	rest, ok := skipRequests(text, served)
	if served == 0 || !ok || len(rest) <= maxHeader {
		return false
	}
	gotRest, wantRest := strings.Join(gotLines[served:], ""), strings.Join(wantLines[served:], "")
	if strings.HasPrefix(gotRest, "431 ") == strings.HasPrefix(wantRest, "431 ") {
		return false
	}
	alone, _ := s.talk(t, s.there, []string{rest})
	tooLarge := gotRest
	if strings.HasPrefix(wantRest, "431 ") {
		tooLarge = wantRest
	}
	return alone == tooLarge
}

// losesRefusal reports whether only the refusal at the end of want is missing in got,
// and net/http loses it too if more follows. It closes the connection after a refusal
// with the bytes that it hasn't read, so that the system resets it. How much it has read
// depends on how the bytes arrive, and they arrive differently after a handover.
func (s *same) losesRefusal(t testing.TB, text, got, want string) bool {
	t.Helper()
	refusal, ok := strings.CutPrefix(want, got)
	if !ok || !strings.HasPrefix(refusal, "400 ") || strings.Count(refusal, "\n") != 1 {
		return false
	}
	refused, ok := skipRequests(text, strings.Count(got, "\n"))
	head, after, whole := strings.Cut(refused, "\r\n\r\n")
	if !ok || !whole || after == "" && !s.refusesEarly(t, head) {
		return false // there was nothing left to read
	}
	for range 20 {
		responses, end := s.talk(t, s.there, []string{text + strings.Repeat("x", 16<<10)})
		if end != complete && responses == got {
			return true
		}
	}
	return false
}

// refusesEarly reports whether net/http refuses a request before its last line.
func (s *same) refusesEarly(t testing.TB, head string) bool {
	t.Helper()
	head = head[:max(0, strings.LastIndex(head, "\r\n"))]
	if !strings.Contains(strings.ToLower(head), "\nhost:") {
		head += "\r\nHost: a"
	}
	response, _ := s.talk(t, s.there, []string{head + "\r\n\r\n"})
	return strings.HasPrefix(response, "400 ")
}

// skipRequests returns text without its first n requests.
func skipRequests(text string, n int) (rest string, ok bool) {
	in := strings.NewReader(text)
	br := bufio.NewReader(in)
	for range n {
		r, err := http.ReadRequest(br)
		if err != nil {
			return "", false
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return "", false
		}
		for i := 0; i < 4 && r.Method == http.MethodPost; i++ { // net/http skips up to four bytes
			if next, err := br.Peek(1); err != nil || next[0] != '\r' && next[0] != '\n' {
				break
			}
			br.Discard(1)
		}
	}
	return text[len(text)-in.Len()-br.Buffered():], true
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
	s := newSame(t)
	for _, c := range conversations {
		s.echo.simple.Store(0)
		s.check(t, c.text)
		if got := s.echo.simple.Load(); got != c.simple && c.simple != anyNumber {
			t.Errorf("%.200q\n%d requests were served as simple, want %d", c.text, got, c.simple)
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
		step := 1 + len(c.text)/testenv.Count(8, 40)
		for i := 1; i < len(c.text); i += step {
			s.check(t, c.text[:i], c.text[i:])
		}
	}
}

// TestSameRandom builds conversations from valid and invalid parts.
func TestSameRandom(t *testing.T) {
	s := newSame(t)
	for start := time.Now(); time.Since(start) < time.Duration(testenv.Count(1, 10))*time.Second && !t.Failed(); {
		var text string
		for range 1 + rand.IntN(4) {
			text += randomRequest()
		}
		i := rand.IntN(len(text))
		s.check(t, text)
		s.check(t, text[:i], text[i:])
	}
}

// TestSameHeadLength: a response to HEAD states the body's length up to a certain size.
func TestSameHeadLength(t *testing.T) {
	s := newSame(t)
	for size := 1950; size < 2060; size++ {
		s.check(t, "HEAD / HTTP/1.1\r\nHost: "+strings.Repeat("a", size)+"\r\n\r\n")
	}
}

// TestSameOverLimit tests the one allowed difference, and similar ones that aren't
// allowed.
func TestSameOverLimit(t *testing.T) {
	s := newSame(t)
	const first = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	over := func(size int, end string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", size) + end
	}
	const limit = maxHeader + 4096 // net/http allows another 4096
	for _, text := range []string{
		first + over(limit+50, "\x00\r\n\r\n"), // 400 if net/http reads beyond the limit
		first + over(limit+50, "\r\n\r\n"),     // 200
		first + first + over(limit+50, "\r\n\r\n"),
		first + over(limit+5000, "\r\n\r\n"), // 431 in any case
		over(limit+50, "\x00\r\n\r\n"),
	} {
		s.check(t, text)
	}
	for _, c := range []struct{ name, text, got, want string }{
		{"the first request", over(limit+50, "\r\n\r\n"), "431 \n", "400 \n"},
		{"other responses", first + over(limit+50, "\r\n\r\n"), "200 \n400 \n", "200 \n200 \n"},
		{"a header within the limit", first + over(100, "\r\n\r\n"), "200 \n431 \n", "200 \n400 \n"},
		{"a large body", first + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000), "200 \n431 \n", "200 \n400 \n"},
	} {
		if s.differsInLimitOnly(t, c.text, c.got, c.want) {
			t.Errorf("%s: a difference was allowed, want it reported", c.name)
		}
	}
}

// TestSameRefusal tests the other allowed difference, and similar ones that aren't
// allowed.
func TestSameRefusal(t *testing.T) {
	s := newSame(t)
	request := func(end string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 900) + end + "\r\n\r\n"
	}
	valid, handedOver, invalid := request(""), request("\x93"), request("\x00")
	served := strings.Repeat(valid, 11) + handedOver + strings.Repeat(valid, 6)
	end := "\r\nX: " + strings.Repeat("x", 900) + "\r\n\r\n"
	for _, text := range []string{
		served + invalid + valid,
		served + invalid,
		served + valid + "GET\xf1 / HTTP/1.1\r\nHost: a" + end, // the first line is enough
		served + valid + "GET / HTTP/1.1\r\nbad" + end,
	} {
		s.check(t, text)
	}

	got, _ := s.talk(t, s.there, []string{served})
	want, _ := s.talk(t, s.there, []string{served + invalid})
	if !s.losesRefusal(t, served+invalid+valid, got, want) {
		t.Errorf("net/http keeps a refusal that more requests follow")
	}
	for _, c := range []struct{ name, text, got, want string }{
		{"nothing after the refused request", served + invalid, got, want},
		{"a missing response", served + valid + valid, got, got + "200 \n"},
		{"two missing responses", served + invalid + valid, "", want},
		{"another response", served + invalid + valid, got + "200 \n", want},
		{"a refusal that net/http doesn't give", served + valid + valid, got, got + "400 \n"},
	} {
		if s.losesRefusal(t, c.text, c.got, c.want) {
			t.Errorf("%s: a difference was allowed, want it reported", c.name)
		}
	}
}

// FuzzSame is run before each release.
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
