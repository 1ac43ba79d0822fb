package http1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// benchRequest and benchHandler are about the size of a list of pets.
const benchRequest = "GET /v1/pets?limit=20 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer ast_live_0123456789ABCDEFGHIJKLMNOPQRSTUV07FdkB\r\n" +
	"User-Agent: bench\r\nAccept: */*\r\n\r\n"

var benchBody = []byte(strings.Repeat("x", 1600))

func benchHandler(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for _, name := range []string{
		"Cache-Control", "Content-Length", "Content-Type", "Etag", "Link", "Vary",
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id",
	} {
		h[name] = benchValues
	}
	h["Content-Length"] = benchLength
	w.Write(benchBody)
}

var (
	benchValues = []string{"some value"}
	benchLength = []string{"1600"}
)

// replay is a connection on which the same requests arrive again and again.
type replay struct {
	net.Conn
	left     int
	requests []string
}

func (c *replay) Read(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, io.EOF
	}
	return copy(b, c.requests[c.left%len(c.requests)]), nil
}
func (c *replay) Write(b []byte) (int, error)      { return len(b), nil }
func (c *replay) Close() error                     { return nil }
func (c *replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *replay) SetReadDeadline(time.Time) error  { return nil }
func (c *replay) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkPlain measures this package alone, BenchmarkPlainTCP with a client, and
// BenchmarkPlainKeys what it costs if requests on a connection have different keys, as
// those of a proxy do.
func BenchmarkPlain(b *testing.B) { benchmarkPlain(b, benchRequest) }

func BenchmarkPlainKeys(b *testing.B) {
	benchmarkPlain(b, benchRequest, strings.Replace(benchRequest, "ABC", "XYZ", 1))
}

func benchmarkPlain(b *testing.B, requests ...string) {
	b.ReportAllocs()
	l := &Listener{server: newServer(http.HandlerFunc(benchHandler)), plain: anyTarget, conns: map[*conn]struct{}{}}
	newConn(&replay{left: b.N, requests: requests}, l).serve()
}

func BenchmarkPlainTCP(b *testing.B) {
	b.ReportAllocs()
	c := dial(b, listen(b, nil, newServer(http.HandlerFunc(benchHandler))))
	c.SetDeadline(time.Time{})
	br := bufio.NewReader(c)
	size := -1
	for b.Loop() {
		io.WriteString(c, benchRequest)
		if size < 0 {
			res, err := http.ReadResponse(br, nil)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			io.WriteString(c, benchRequest)
			br.Peek(1)
			size = br.Buffered()
		}
		if _, err := br.Discard(size); err != nil {
			b.Fatal(err)
		}
	}
}
