package pages

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/docs"
	"animalstore/openapi"
)

// newPages returns the pages of a server of this deployment.
func newPages(env animalstore.Environment, version string) *Pages {
	return New(Config{Environment: env, Version: version, OpenAPI: openapi.JSON, Guides: docs.Files})
}

// fetchPage requests one of the pages.
func fetchPage(p *Pages, method, path string, header http.Header) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	if header != nil {
		r.Header = header
	}
	w := httptest.NewRecorder()
	p.Serve(w, r, false)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestPages: a page has the required content and headers, no inline scripts or
// styles, and everything it refers to exists.
func TestPages(t *testing.T) {
	inside := regexp.MustCompile(`(?i)<style|<script>|<script [^>]*>[^<]|\sstyle=|\son\w+=|javascript:`)
	for _, env := range []animalstore.Environment{animalstore.Production, animalstore.Staging} {
		p := newPages(env, "v1.2.3")
		for _, path := range []string{"/", "/docs", "/docs/", "/docs/guides", "/docs/guides/", "/docs/guides/callers"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = "127.0.0.1:8080"
			w := httptest.NewRecorder()
			p.Serve(w, r, false)
			got := w.Result()
			html := body(t, got)
			wantLinks(t, p, path, html)
			for name, want := range map[string]string{
				"Content-Type":           "text/html; charset=utf-8",
				"X-Content-Type-Options": "nosniff",
				"Referrer-Policy":        "no-referrer",
				"Cache-Control":          "no-cache",
			} {
				if got := got.Header.Get(name); got != want {
					t.Errorf("%s: %s: got %q, want %q", path, name, got, want)
				}
			}
			policy := got.Header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "style-src 'self'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: got the policy %q, want %s in it", path, policy, want)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "connect-src") != (path == "/docs" || path == "/docs/") {
				t.Errorf("%s: got the policy %q, want nothing unsafe, and requests only from /docs", path, policy)
			}
			if found := inside.FindString(html); found != "" {
				t.Errorf("%s: got %q in the page, want scripts and styles in files of this server", path, found)
			}
			if !strings.Contains(html, ">"+string(env)+"<") || !strings.Contains(html, `<html lang="en">`) {
				t.Errorf("%s: got a page without its environment %s, or its language:\n%s", path, env, html)
			}
		}
		landing := body(t, fetchPage(p, "GET", "/", nil))
		prefix := map[animalstore.Environment]string{animalstore.Production: "ast_live_", animalstore.Staging: "ast_test_"}[env]
		for _, want := range []string{"animalstore v1.2.3", prefix, `href="/docs"`, `href="/docs/guides"`, `href="/openapi.yaml"`, `href="/openapi.json"`, `href="/livez"`, `href="/readyz"`} {
			if !strings.Contains(landing, want) {
				t.Errorf("the landing page of %s has no %s:\n%s", env, want, landing)
			}
		}
	}
}

// TestUntrustedHost: the line to paste contains only a safe address, regardless of the Host that the
// client sends.
func TestUntrustedHost(t *testing.T) {
	p := newPages(animalstore.Production, `<b>"version"`)
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}
	for host, want := range map[string]string{
		"shop.example":             "http://shop.example/v1",
		"shop.example:8080":        "http://shop.example:8080/v1",
		"127.0.0.1:8080":           "http://127.0.0.1:8080/v1",
		"[::1]:8080":               "http://[::1]:8080/v1",
		"[2001:db8::1]":            "http://[2001:db8::1]/v1",
		"under_score-dash.example": "http://under_score-dash.example/v1",
		"":                         "http://192.0.2.7:8080/v1",
		"$(reboot)":                "http://192.0.2.7:8080/v1",
		"<script>alert(1)":         "http://192.0.2.7:8080/v1",
		"shop.example/evil?":       "http://192.0.2.7:8080/v1",
		"user@shop.example":        "http://192.0.2.7:8080/v1",
		"shop.example:":            "http://192.0.2.7:8080/v1",
		"shop.example:123456":      "http://192.0.2.7:8080/v1",
		"shop.example\nevil":       "http://192.0.2.7:8080/v1",
		"[::1":                     "http://192.0.2.7:8080/v1",
		strings.Repeat("x", 300):   "http://192.0.2.7:8080/v1",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		r.Host = host
		w := httptest.NewRecorder()
		p.Serve(w, r, false)
		html := w.Body.String()
		if !strings.Contains(html, `"`+want+`/pets"`) || !strings.Contains(html, "<code>"+want+"</code>") {
			t.Errorf("host %.50q: want %s in\n%s", host, want, html)
		}
		if want == "http://192.0.2.7:8080/v1" && host != "" && strings.Contains(html, host) {
			t.Errorf("host %.50q: the page contains it", host)
		}
		if strings.Contains(html, "<b>") {
			t.Errorf("the version is not escaped:\n%s", html)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{}
	w := httptest.NewRecorder()
	p.Serve(w, r, true)
	if !strings.Contains(w.Body.String(), "https://example.com/v1") {
		t.Errorf("over HTTPS: got\n%s", w.Body)
	}
}

// TestAssets: each asset has the content of its file, compressed or not, and is
// cached by browsers until it changes.
func TestAssets(t *testing.T) {
	p := newPages(animalstore.Production, "")
	for name, asset := range p.assets.byName {
		path := p.assets.Prefix + name
		want, err := fs.ReadFile(web, "web/"+name)
		if err != nil {
			t.Fatal(err)
		}
		for encoding, gzipped := range map[string]bool{
			"": false, "br": false, "gzip;q=0": false, "gzip; q=0.000, br": false, "identity, br;q=1": false,
			"gzip": true, "deflate, gzip;q=0.5, br": true, "br, gzip;q=1.0": true,
		} {
			got := fetchPage(p, "GET", path, http.Header{"Accept-Encoding": {encoding}})
			if got.StatusCode != 200 || unpacked(t, got) != string(want) || (got.Header.Get("Content-Encoding") == "gzip") != gzipped {
				t.Errorf("%s with Accept-Encoding %q: got %d, encoding %q, want 200 and the file, gzip: %t", name, encoding, got.StatusCode, got.Header.Get("Content-Encoding"), gzipped)
			}
			if kept := got.Header.Get("Cache-Control"); !strings.Contains(kept, "immutable") || got.Header.Get("X-Content-Type-Options") != "nosniff" || asset.contentType == "" || got.Header.Get("Content-Type") != asset.contentType {
				t.Errorf("%s: got the header %v, want a type and permanent caching", name, got.Header)
			}
			if head := fetchPage(p, "HEAD", path, http.Header{"Accept-Encoding": {encoding}}); head.StatusCode != 200 || body(t, head) != "" {
				t.Errorf("HEAD %s: got %d and a body, want 200 and none", name, head.StatusCode)
			}
		}
	}
	if p.Has(p.assets.Prefix) || p.Has("icon.svg") || p.Has("/icon.svg") || p.Has(p.assets.Prefix+"landing.html") {
		t.Error("got an asset at a path that shouldn't have one")
	}
}

// TestNotModified: a browser that already has a page isn't sent it again.
func TestNotModified(t *testing.T) {
	p := newPages(animalstore.Production, "")
	for _, path := range []string{"/", "/docs", "/docs/guides", "/docs/guides/contract", "/favicon.ico", p.assets.Prefix + "base.css"} {
		first := fetchPage(p, "GET", path, http.Header{"Accept-Encoding": {"gzip"}})
		tag := first.Header.Get("ETag")
		for sent, want := range map[string]int{tag: 304, `"x", ` + tag: 304, `"x"`: 200} {
			got := fetchPage(p, "GET", path, http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {sent}})
			if got.StatusCode != want || want == 304 && body(t, got) != "" {
				t.Errorf("%s with If-None-Match %s: got %d, want %d", path, sent, got.StatusCode, want)
			}
		}
		if !regexp.MustCompile(`^"[0-9a-f]{16}"$`).MatchString(tag) {
			t.Errorf("%s: got the ETag %s", path, tag)
		}
	}
	if a, b := fetchPage(p, "GET", "/", nil), fetchPage(newPages(animalstore.Staging, ""), "GET", "/", nil); a.Header.Get("ETag") == b.Header.Get("ETag") {
		t.Error("two different pages have the same ETag")
	}
}

// unpacked is the body of a response without its encoding.
func unpacked(t *testing.T, r *http.Response) string {
	t.Helper()
	content := body(t, r)
	if r.Header.Get("Content-Encoding") == "" {
		return content
	}
	z, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}
