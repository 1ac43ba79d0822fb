package api_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/openapi"
)

// TestPublicIsCharged: everything outside /v1 but the health checks draws on the
// bucket of the caller's address, the one of requests without a valid key.
func TestPublicIsCharged(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	remaining := func(from string) int64 {
		t.Helper()
		return atoi(t, s.do(t, call{path: "/v1/pets", key: noKey, from: from}).header.Get("X-RateLimit-Remaining"))
	}
	page := s.do(t, call{path: "/", key: noKey, from: "192.0.2.9:1"})
	_, asset, _ := strings.Cut(string(page.body), `href="/assets/`)
	asset, _, _ = strings.Cut(asset, `"`)
	charged := []string{"/", "/docs/guides", "/favicon.ico", "/assets/" + asset + "x", "/openapi.yaml", "/nothing", "/v2/pets"}
	for i, path := range charged {
		from := fmt.Sprintf("192.0.2.%d:1", 20+i)
		for _, method := range []string{"GET", "HEAD", "POST"} {
			s.do(t, call{method: method, path: path, key: noKey, from: from})
		}
		if got := remaining(from); got != 3000-4 {
			t.Errorf("%s: got %d remaining after 4 requests, want %d", path, got, 3000-4)
		}
	}
	const full = "192.0.2.1:1"
	s.useUp(full)
	for _, path := range charged {
		got := s.do(t, call{path: path, key: noKey, from: full})
		got.want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
		if got.header.Get("Retry-After") != "60" || got.header.Get("X-RateLimit-Limit") != "3000" || got.header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("%s: got %v, want Retry-After 60 and the limit", path, got.header)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/assets/" + asset} {
		s.do(t, call{path: path, key: noKey, from: full}).want(t, http.StatusOK, "")
	}
	s.do(t, call{path: "/v1/pets", from: full}).want(t, http.StatusOK, "") // a valid key
	s.do(t, call{path: "/", key: noKey, from: "192.0.2.2:1"}).want(t, http.StatusOK, "")
	s.clock.Advance(time.Minute)
	s.do(t, call{path: "/", key: noKey, from: full}).want(t, http.StatusOK, "")
}

// TestOpenAPIDocument: the document is served in both forms, and not again to a client that
// has it. Package pages tests how it is compressed.
func TestOpenAPIDocument(t *testing.T) {
	s := start(t)
	for path, want := range map[string][]byte{"/openapi.yaml": openapi.YAML, "/openapi.json": openapi.JSON} {
		c := call{path: path, key: noKey}
		got := s.do(t, c)
		tag := got.header.Get("ETag")
		if got.status != 200 || !bytes.Equal(got.body, want) || !strongTag.MatchString(tag) ||
			got.header.Get("Content-Length") != strconv.Itoa(len(want)) {
			t.Errorf("%s: got %d %v and %d bytes, want the document", path, got.status, got.header, len(got.body))
		}
		if unchanged := s.do(t, with(c, "If-None-Match", tag)); unchanged.status != 304 || unchanged.header.Get("ETag") != tag {
			t.Errorf("%s with If-None-Match: got %v %v, want 304", path, unchanged, unchanged.header)
		}
		s.do(t, with(c, "If-None-Match", `"x"`)).want(t, http.StatusOK, "")
	}
}

// TestSecurityText: a contact for vulnerabilities is published if there is one.
func TestSecurityText(t *testing.T) {
	s := start(t, func(with *setup) { with.securityContact = "mailto:security@shop.example" })
	got := s.do(t, call{path: "/.well-known/security.txt", key: noKey})
	want := "Contact: mailto:security@shop.example\nExpires: " + s.clock.Now().AddDate(0, 0, 30).Format("2006-01-02") + "T00:00:00Z\n"
	if got.status != http.StatusOK || string(got.body) != want || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %d %q, want %q", got.status, got.body, want)
	}
	start(t).do(t, call{path: "/.well-known/security.txt"}).want(t, http.StatusNotFound, animalstore.RouteNotFound)
}

// TestStrictTransport: a client that came by TLS shall come by TLS only.
func TestStrictTransport(t *testing.T) {
	s := start(t)
	for _, secure := range []*tls.ConnectionState{nil, {}} {
		r := httptest.NewRequest("GET", "/livez", nil)
		r.TLS = secure
		w := httptest.NewRecorder()
		s.server.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security"); (got != "") != (secure != nil) {
			t.Errorf("TLS %t: got Strict-Transport-Security %q", secure != nil, got)
		}
	}
}
