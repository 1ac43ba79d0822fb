package certs

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRedirect: plain HTTP redirects to the same path over HTTPS, but only to hosts of
// the certificate, regardless of what the request claims.
func TestRedirect(t *testing.T) {
	dir := t.TempDir()
	newPair(t, 1, time.Hour).write(t, dir)
	w := watch(t, dir)
	on := func(port int) *httptest.Server {
		s := httptest.NewServer(Redirect(w.files, &net.TCPAddr{Port: port}))
		t.Cleanup(s.Close)
		return s
	}
	usual, other := on(443), on(8443)
	for _, c := range []struct {
		server   *httptest.Server
		request  string // the first lines, without the empty one
		status   int
		location string
	}{
		{usual, "GET /v1/pets?limit=3&status=sold HTTP/1.1\r\nHost: shop.example", 308, "https://shop.example/v1/pets?limit=3&status=sold"},
		{usual, "POST /v1/pets HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0", 308, "https://shop.example/v1/pets"},
		{usual, "GET / HTTP/1.1\r\nHost: SHOP.example.:80", 308, "https://shop.example/"},
		{other, "GET / HTTP/1.1\r\nHost: shop.example", 308, "https://shop.example/"},
		{other, "GET / HTTP/1.1\r\nHost: shop.example:8080", 308, "https://shop.example:8443/"},
		{other, "GET /%2e%2e//a%0d%0ab HTTP/1.1\r\nHost: 127.0.0.1:8080", 308, "https://127.0.0.1:8443/%2e%2e//a%0d%0ab"},
		{usual, "GET //evil.example/x HTTP/1.1\r\nHost: shop.example", 308, "https://shop.example//evil.example/x"},
		{usual, "GET /\\evil.example HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Host: evil.example", 308, "https://shop.example/%5Cevil.example"},
		{usual, "GET / HTTP/1.1\r\nHost: evil.example", 421, ""},
		{usual, "GET http://evil.example/ HTTP/1.1\r\nHost: shop.example", 421, ""},
		{usual, "GET / HTTP/1.1\r\nHost: shop.example@evil.example", 400, ""},
		{usual, "GET / HTTP/1.1\r\nHost: ", 421, ""},
		{usual, "OPTIONS * HTTP/1.1\r\nHost: shop.example", 200, ""}, // answered by net/http
		{usual, "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443", 400, ""},
		{usual, "GET / HTTP/1.1\r\nHost: shop.example\r\nHost: evil.example", 400, ""},
	} {
		conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(c.request + "\r\nConnection: close\r\n\r\n"))
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", c.request, err)
		}
		res.Body.Close()
		conn.Close()
		if got := res.Header.Get("Location"); res.StatusCode != c.status || got != c.location {
			t.Errorf("%q: got %d to %q, want %d to %q", c.request, res.StatusCode, got, c.status, c.location)
		}
	}
}
