package api_test

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

const (
	allowPets  = "GET, HEAD, OPTIONS, POST"
	allowPet   = "DELETE, GET, HEAD, OPTIONS, PATCH"
	allowOrder = "GET, HEAD, OPTIONS, PATCH"
	allowRead  = "GET, HEAD, OPTIONS"
	allowPost  = "OPTIONS, POST"
	allowPut   = "GET, HEAD, OPTIONS, PUT"
)

// TestUnknownPath: no path is cleaned, guessed or redirected, and without a key nobody
// learns which paths exist.
func TestUnknownPath(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	for _, path := range []string{
		"/v1", "/v1/", "/v1/dogs", "/v1/petss", "/v1/Pets",
		"/v1/pets/", "/v1//pets", "/v1/pets/1/", "/v1/pets//1", "/v1/pets/1/x",
		"/v1/./pets", "/v1/pets/.", "/v1/pets/..", "/v1/pets/../pets", "/v1/../v1/pets", "/v1/..", "/v1/../livez", "/v1/pets/%2E%2e", "/v1/dogs/../pets",
		"/v1%2Fpets", "/v1/pets%2F1", "/v1/pets/%2F", "/v1/pets/1%2f", "/v1/store%2Forders",
		"/v1/store", "/v1/store/orders/1/x", "/v1/limits/1",
		"/v1/keys//rotate", "/v1/keys/../rotate", "/v1/keys/1/rotate/", "/v1/keys/1/revoke", "/v1/keys/1%2Frotate", "/v1/keys/1/2/rotate",
		"/v1/pets;v=1", "/v1/pets%20", "/v1/pets%00", "/v1/v1/pets", "/v1/pets%3Flimit=1", "/v1/{petId}/",
	} {
		t.Run(path, func(t *testing.T) {
			for _, method := range []string{"GET", "DELETE", "OPTIONS"} {
				s.do(t, call{method: method, path: path, bad: true}).want(t, http.StatusNotFound, animalstore.RouteNotFound)
			}
			s.do(t, call{path: path, key: noKey, bad: true}).want(t, http.StatusUnauthorized, animalstore.MissingAPIKey)
		})
	}
}

// TestEscapedPath: an escape means the character it stands for.
func TestEscapedPath(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	for _, path := range []string{"/v1/%70ets", "/%761/pets", "/v1/pets/%31", "/v1/store/%6Frders", "/v1/pets?"} {
		s.do(t, call{path: path}).want(t, http.StatusOK, "")
	}
	got := s.raw(t, "GET http://elsewhere.example/v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.owner+"\r\n\r\n")
	got.want(t, http.StatusOK, "")
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin, reader := s.key(t, animalstore.Admin), s.key(t, animalstore.Read) // 405 comes before 403
	paths := []struct{ path, allow string }{
		{"/v1/pets", allowPets}, {"/v1/pets/1", allowPet}, {"/v1/pets/abc", allowPet}, {"/v1/pets/batch", allowPost},
		{"/v1/store/orders", allowPets}, {"/v1/store/orders/1", allowOrder},
		{"/v1/categories", allowRead}, {"/v1/categories/1", allowPut},
		{"/v1/store/inventory", allowRead}, {"/v1/events", allowRead},
		{"/v1/keys/1", allowPet}, {"/v1/keys/1/rotate", allowPost}, {"/v1/keys/1/usage", allowRead},
		{"/v1/webhooks/1/deliveries/1", allowRead}, {"/v1/webhooks/1/deliveries/retry", allowPost}, {"/v1/webhooks/1/deliveries/retry/retry", allowPost},
	}
	for _, p := range paths {
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", strings.Repeat("X", 500),
		} {
			name := method[:min(len(method), 20)] + " " + p.path
			t.Run(name, func(t *testing.T) {
				key := admin
				if strings.HasPrefix(p.path, "/v1/keys") || strings.HasPrefix(p.path, "/v1/webhooks") {
					key = reader
				}
				got := s.raw(t, method+" "+p.path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+key+"\r\n\r\n")
				known := strings.Contains(", "+p.allow+",", ", "+method+",") || strings.HasSuffix(p.allow, ", "+method)
				switch {
				case method == "OPTIONS":
					got.want(t, http.StatusNoContent, "")
				case known:
					got.want(t, http.StatusForbidden, animalstore.InsufficientPermission)
					return
				default:
					got.want(t, http.StatusMethodNotAllowed, animalstore.MethodNotAllowed)
				}
				if got := got.header.Get("Allow"); got != p.allow {
					t.Errorf("Allow: got %q, want %q", got, p.allow)
				}
			})
		}
	}
}

// TestHead: HEAD is GET without the body.
func TestHead(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"}, animalstore.NewPet{Name: "Mia"})
	for _, path := range []string{"/v1/pets", "/v1/pets?limit=1", "/v1/pets?limit=0", "/v1/pets/1", "/v1/pets/9", "/v1/store/orders",
		"/v1/store/inventory", "/v1/categories", "/v1/keys", "/v1/keys/9", "/v1/dogs", "/livez", "/readyz", "/openapi.yaml", "/", "/docs/x", "/nothing"} {
		for _, key := range []string{s.owner, noKey} {
			c := call{path: path, key: key, header: http.Header{"X-Request-Id": {"same"}}, bad: true}
			get := s.do(t, c)
			c.method = "HEAD"
			head := s.do(t, c)
			for _, differs := range []string{"Date", "X-RateLimit-Remaining"} {
				get.header.Del(differs)
				head.header.Del(differs)
			}
			if head.status != get.status || len(head.body) != 0 || !maps.EqualFunc(head.header, get.header, slices.Equal) {
				t.Errorf("HEAD %s\n got %d %v %s\nwant %d %v without a body", path, head.status, head.header, head.body, get.status, get.header)
			}
		}
	}
}

// TestPublic: the pages next to the API need no key.
func TestPublic(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/", "/docs", "/docs/guides/quickstart", "/favicon.ico", "/livez", "/readyz", "/openapi.yaml"} {
		s.do(t, call{path: path, key: noKey}).want(t, http.StatusOK, "")
		got := s.do(t, call{method: "POST", path: path, key: noKey, body: "{}"})
		got.want(t, http.StatusMethodNotAllowed, animalstore.MethodNotAllowed)
		if got := got.header.Get("Allow"); got != "GET, HEAD" {
			t.Errorf("%s: Allow: got %q, want GET, HEAD", path, got)
		}
	}
	for _, path := range []string{"/v2/pets", "/pets", "/V1/pets", "/v1pets", "//v1/pets", "/livez/", "/livez/../v1/pets", "/favicon.ico/", "/docsx", "/index.html", "/assets/", "/assets/x/base.css",
		"/console/../metrics", "/console/./pets", "/console//pets", "/console/pets/..", "/console/%2e%2e/metrics"} {
		s.do(t, call{path: path, key: noKey}).want(t, http.StatusNotFound, animalstore.RouteNotFound)
	}
	for _, path := range []string{"/docs/x", "/docs/guides/x", "/docs//"} {
		got := s.do(t, call{path: path, key: noKey, bad: true})
		if got.status != http.StatusNotFound || got.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(string(got.body), `href="/docs/guides/callers"`) {
			t.Errorf("%s: got %d %v %.80s, want 404 and a page with the guides", path, got.status, got.header, got.body)
		}
	}
	s.handler.Drain()
	s.do(t, call{path: "/livez", key: noKey}).want(t, http.StatusOK, "")
	s.do(t, call{path: "/readyz", key: noKey}).want(t, http.StatusServiceUnavailable, animalstore.ShuttingDown)
	got := s.raw(t, "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.owner+"\r\n\r\n")
	got.want(t, http.StatusOK, "")
	if got.header.Get("Connection") != "close" {
		t.Errorf("while draining: got Connection %q, want close", got.header.Get("Connection"))
	}
}

// TestLandingPageAddress: the page tells people how they reach the server, which
// is by HTTPS if the proxy that we trust says so.
func TestLandingPageAddress(t *testing.T) {
	s := start(t, func(s *setup) { s.proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }).inProcess()
	const proxy, client = "10.0.0.1:1", "192.0.2.1:1"
	for _, test := range []struct{ from, proto, want string }{
		{proxy, "https", "https://"}, {proxy, "HTTPS", "https://"}, {proxy, "http", "http://"},
		{proxy, "gopher", "http://"}, {proxy, "", "http://"},
		{client, "https", "http://"}, {client, "", "http://"},
	} {
		got := s.do(t, call{path: "/", key: noKey, from: test.from, header: http.Header{"X-Forwarded-Proto": {test.proto}}})
		got.want(t, http.StatusOK, "")
		if want := test.want + s.addr + "/v1/pets"; !strings.Contains(string(got.body), want) {
			t.Errorf("X-Forwarded-Proto %q from %s: got %s\nwant %s in it", test.proto, test.from, got.body, want)
		}
	}
}
