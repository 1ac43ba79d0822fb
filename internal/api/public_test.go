package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
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
	s.clock.advance(time.Minute)
	s.do(t, call{path: "/", key: noKey, from: full}).want(t, http.StatusOK, "")
}

// TestOpenAPIDocument: the document has a length and a tag, compressed or not, and
// isn't sent to a client that has it.
func TestOpenAPIDocument(t *testing.T) {
	s := start(t)
	for path, want := range map[string][]byte{"/openapi.yaml": openapi.YAML, "/openapi.json": openapi.JSON} {
		tags := map[string]bool{}
		for coding, packed := range map[string]bool{"": false, "identity": false, "gzip;q=0, *": false, "br, gzip": true} {
			c := call{path: path, key: noKey, header: http.Header{"Accept-Encoding": {coding}}}
			got := s.do(t, c)
			body := got.body
			if packed {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			tag := got.header.Get("ETag")
			tags[tag] = true
			if got.status != 200 || !bytes.Equal(body, want) || (got.header.Get("Content-Encoding") == "gzip") != packed {
				t.Errorf("%s for %q: got %d %v and %d bytes, want the document", path, coding, got.status, got.header, len(body))
			}
			if got.header.Get("Content-Length") != strconv.Itoa(len(got.body)) || !strongTag.MatchString(tag) || got.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q: got %v, want length, ETag and Vary", path, coding, got.header)
			}
			if packed && len(got.body)*4 > len(want) {
				t.Errorf("%s: got %d bytes compressed of %d, want less than a quarter", path, len(got.body), len(want))
			}
			unchanged := s.do(t, with(c, "If-None-Match", tag))
			if unchanged.status != 304 || len(unchanged.body) != 0 || unchanged.header.Get("ETag") != tag || unchanged.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s with If-None-Match: got %v %v, want 304", path, unchanged, unchanged.header)
			}
			s.do(t, with(c, "If-None-Match", `"x"`)).want(t, http.StatusOK, "")
		}
		if len(tags) != 2 {
			t.Errorf("%s: got tags %v, want one for each encoding", path, tags)
		}
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
