package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/api"
)

// bodyOf is a body for a new pet of exactly n bytes.
func bodyOf(n int) string {
	const start, end = `{"name":"Rex","categoryId":7,"x":"`, `"}`
	return start + strings.Repeat("x", n-len(start)-len(end)) + end
}

func TestBodySize(t *testing.T) {
	s := start(t)
	chunked := func(body string) io.Reader { return struct{ io.Reader }{strings.NewReader(body)} }
	tests := []struct {
		name   string
		body   string
		stream io.Reader
		header http.Header
		want   int
	}{
		{name: "1 MiB", body: bodyOf(api.MaxBody), want: 201},
		{name: "a byte more", body: bodyOf(api.MaxBody + 1), want: 413},
		{name: "1 MiB in chunks", stream: chunked(bodyOf(api.MaxBody)), want: 201},
		{name: "a byte more in chunks", stream: chunked(bodyOf(api.MaxBody + 1)), want: 413},
		{name: "four times as much in chunks", stream: chunked(bodyOf(4 * api.MaxBody)), want: 413},
		{name: "1 MiB of blanks after the object in chunks", stream: chunked(bodyOf(100) + strings.Repeat(" ", api.MaxBody)), want: 413},
		{name: "1 MiB asked about first", body: bodyOf(api.MaxBody), header: http.Header{"Expect": {"100-continue"}}, want: 201},
		{name: "a byte more asked about first", body: bodyOf(api.MaxBody + 1), header: http.Header{"Expect": {"100-continue"}}, want: 413},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{method: "POST", path: "/v1/pets", body: test.body, stream: test.stream, header: test.header, bad: true})
			if test.want == http.StatusCreated {
				got.want(t, test.want, "")
				return
			}
			got.want(t, test.want, animalstore.PayloadTooLarge)
			got.wantMessage(t, fmt.Sprint(api.MaxBody))
		})
	}
}

// TestBodyOnTheWire sends what no client of Go's would.
func TestBodyOnTheWire(t *testing.T) {
	s := start(t)
	const good = `{"name":"Rex","categoryId":7}`
	tests := []struct {
		name    string
		request string // after the request line, Host and Authorization
		cut     bool   // and then nothing
		want    int
		code    animalstore.Code
	}{
		{"shorter than announced", "Content-Length: 100\r\n\r\n" + good, true, 400, "malformed_json"},
		{"a chunk cut off", "Transfer-Encoding: chunked\r\n\r\n1d\r\n" + good[:10], true, 400, "malformed_json"},
		{"a chunk of no length", "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + good + "\r\n0\r\n\r\n", false, 400, "malformed_json"},
		{"no last chunk", "Transfer-Encoding: chunked\r\n\r\n1d\r\n" + good + "\r\n", true, 400, "malformed_json"},
		{"in two chunks", "Transfer-Encoding: chunked\r\n\r\na\r\n" + good[:10] + "\r\n13\r\n" + good[10:] + "\r\n0\r\n\r\n", false, 201, ""},
		{"with a trailer", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1d\r\n" + good + "\r\n0\r\nX-Sum: 1\r\n\r\n", false, 201, ""},
		{"none, without a length", "\r\n", false, 400, "malformed_json"},
		{"none, of length 0", "Content-Length: 0\r\n\r\n", false, 400, "malformed_json"},
		{"announced far too large and never sent", "Content-Length: 999999999999\r\n\r\n", false, 413, "payload_too_large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.rawEnd(t, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.owner+"\r\n"+test.request, test.cut)
			got.want(t, test.want, test.code)
		})
	}
	if got := s.do(t, call{path: "/v1/pets"}).pets(t); len(got) != 2 {
		t.Errorf("got %d pets, want the 2 that were sent whole", len(got))
	}
}

// TestExpectRefused: a client that asks first is told no before it sends.
func TestExpectRefused(t *testing.T) {
	s := start(t)
	const ask = "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"
	tests := []struct {
		name, request string
		want          int
		code          animalstore.Code
	}{
		{"without a key", "POST /v1/pets HTTP/1.1\r\nHost: x\r\n" + ask, 401, "missing_api_key"},
		{"without permission", "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key(t, animalstore.Read) + "\r\n" + ask, 403, "insufficient_permission"},
		{"where there is nothing", "POST /v1/dogs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.owner + "\r\n" + ask, 404, "route_not_found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// raw reads the first response there is: 100 would be one.
			s.raw(t, test.request).want(t, test.want, test.code)
		})
	}
}

// TestBodyOnGet: a body that has no meaning is not looked at.
func TestBodyOnGet(t *testing.T) {
	s := start(t)
	for _, method := range []string{"GET", "HEAD"} {
		got := s.do(t, call{method: method, path: "/v1/pets", body: "nonsense", header: http.Header{"Content-Type": {"text/plain"}}})
		got.want(t, http.StatusOK, "")
	}
}
