package http1

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// conversations are what clients might send on one connection, and how many of the
// requests are simple.
var conversations = []struct {
	text   string
	simple int64
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
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 2\r\nY: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 2\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 2\r\nZ: 1\r\n\r\n", 4},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nX: 1\r\nHost: b\r\nX: 12\r\nZ: 3\r\n\r\nGET / HTTP/1.1\r\nX: 1\r\nHost: b\r\nX: 1\r\nZ: 3\r\n\r\n", 4},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: 1\r\n\r\nonePOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX: 1\r\n\r\nthreePOST / HTTP/1.1\r\nHost: a\r\nY: 5\r\nX: 1\r\n\r\n", 3},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nHost: a\r\n\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nX: 2\r\nX: 1\r\n\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n", 1},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n", 1},
	// After a request that isn't simple, no request is.
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

// randomRequest returns a request that sometimes contains a mistake.
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
