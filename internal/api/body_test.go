package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/api"
)

// TestAddPet is what a body may look like. Package strictjson has more of that.
func TestAddPet(t *testing.T) {
	t.Parallel()
	s := start(t)
	tests := []struct {
		name, body string
		want       string // after the id
	}{
		{"the required fields", `{"name":"Rex","categoryId":7}`, `"name":"Rex","categoryId":7,"status":"available"`},
		{"a name with escapes, and unknown fields", `{"name":"\"\\\/\b\f\n\r\t\u0001e\u0301<b>&amp;","tags":[{"a":null}],"categoryId":7,"":0}`, `"name":"\"\\/\b\f\n\r\t\u0001é<b>&amp;","categoryId":7,"status":"available"`},
		{"the longest name", `{"name":"` + strings.Repeat("😀", 1024) + `","categoryId":7}`, `"name":"` + strings.Repeat("😀", 1024) + `","categoryId":7,"status":"available"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{method: "POST", path: "/v1/pets", body: test.body})
			got.want(t, http.StatusCreated, "")
			id := strings.TrimPrefix(got.header.Get("Location"), "/v1/pets/")
			if want := `{"id":` + id + `,` + test.want + "}\n"; string(got.body) != want {
				t.Errorf("got %s\nwant %s", got.body, want)
			}
			if read := s.do(t, call{path: got.header.Get("Location")}); string(read.body) != string(got.body) {
				t.Errorf("read back: got %s, want %s", read.body, got.body)
			}
			if first := s.do(t, call{path: "/v1/pets?limit=1"}); string(first.body) != "["+strings.TrimSpace(string(got.body))+"]\n" {
				t.Errorf("newest in the list: got %s, want %s", first.body, got.body)
			}
		})
	}
}

// TestMediaTypes: a 415 says what would be accepted.
func TestMediaTypes(t *testing.T) {
	s := start(t)
	pet := petPath(s.addOne(t, "available").ID)
	created, changed := post("/v1/pets", rex), patch(pet, `{}`)
	const kind, coding = "Content-Type", "Content-Encoding"
	const merged = "application/json, application/merge-patch+json" // what a PATCH accepts
	for _, test := range []struct {
		call             call
		header           http.Header
		want             int
		patch, encodings string // Accept-Patch and Accept-Encoding
	}{
		{created, http.Header{kind: nil}, 201, "", ""},
		{created, http.Header{kind: {""}}, 201, "", ""},
		{created, http.Header{kind: {"application/json; charset=utf-8"}}, 201, "", ""},
		{created, http.Header{kind: {"application/json; v=1"}}, 201, "", ""},
		{created, http.Header{coding: {"identity"}}, 201, "", ""},
		{call{path: pet, body: "nonsense"}, http.Header{kind: {"text/plain"}}, 200, "", ""}, // a body without a meaning
		{changed, http.Header{kind: {"application/json; charset=utf-8"}}, 200, "", ""},
		{changed, http.Header{kind: {"application/merge-patch+json; charset=utf-8"}}, 200, "", ""},

		{created, http.Header{kind: {"text/plain"}}, 415, "", ""},
		{created, http.Header{kind: {"application/vnd.pet+json"}}, 415, "", ""},
		{created, http.Header{kind: {"application/merge-patch+json"}}, 415, "", ""},
		{created, http.Header{kind: {";;;"}}, 415, "", ""},
		{created, http.Header{kind: {"application/json; charset"}}, 415, "", ""},
		{created, http.Header{kind: {"application/json, text/plain"}}, 415, "", ""},
		{created, http.Header{kind: {"application/json", "text/plain"}}, 415, "", ""},
		{created, http.Header{coding: {"identity, gzip"}}, 415, "", "identity"},
		{created, http.Header{coding: {"identity", "gzip"}}, 415, "", "identity"},
		{put("/v1/categories/7", `{}`), http.Header{coding: {"gzip"}}, 415, "", "identity"},
		{put("/v1/categories/7", `{}`), http.Header{kind: {"application/merge-patch+json"}}, 415, "", ""},
		{changed, http.Header{kind: {"application/json-patch+json"}}, 415, merged, ""},
		{changed, http.Header{coding: {"gzip"}}, 415, merged, "identity"},
	} {
		test.call.header, test.call.bad = test.header, true
		got := s.do(t, test.call)
		name := fmt.Sprintf("%s %s %v", test.call.method, test.call.path, test.header)
		if got.status != test.want || test.want == 415 && got.code() != animalstore.UnsupportedMediaType {
			t.Errorf("%s: got %v, want %d", name, got, test.want)
		}
		if patch, encodings := got.header.Get("Accept-Patch"), got.header.Get("Accept-Encoding"); patch != test.patch || encodings != test.encodings {
			t.Errorf("%s: got Accept-Patch %q and Accept-Encoding %q, want %q and %q", name, patch, encodings, test.patch, test.encodings)
		}
	}
	for path, want := range map[string]string{pet: merged, "/v1/store/orders/1": merged, "/v1/keys/1": merged, "/v1/pets": "", "/v1/categories/7": ""} {
		if got := s.do(t, call{method: "OPTIONS", path: path}).header.Get("Accept-Patch"); got != want {
			t.Errorf("OPTIONS %s: got Accept-Patch %q, want %q", path, got, want)
		}
	}
}

// bodyOf is a body for a new pet of exactly n bytes.
func bodyOf(n int) string {
	const start, end = `{"name":"Rex","categoryId":7,"x":"`, `"}`
	return start + strings.Repeat("x", n-len(start)-len(end)) + end
}

func TestBodySize(t *testing.T) {
	t.Parallel()
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
		})
	}
}

// TestBodyOnTheWire sends requests that Go's HTTP client can't send.
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
			// raw returns the first response, so a 100 Continue would fail the test.
			s.raw(t, test.request).want(t, test.want, test.code)
		})
	}
}

// slowly hands out a body after a while.
type slowly struct {
	io.Reader
	wait time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(s.wait)
	s.wait = 0
	return s.Reader.Read(p)
}

// TestSlowBody: the time for the work does not begin before the body is there.
func TestSlowBody(t *testing.T) {
	s := start(t, func(with *setup) { with.wrap, with.requestTimeout = echo, api.RequestTimeout }).inProcess()
	synctest.Test(t, func(t *testing.T) {
		body := &slowly{strings.NewReader(`{"name":"Rex","categoryId":7}`), api.RequestTimeout + time.Second}
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/pets", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.owner)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, req)
		if w.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", w.Code, w.Body)
		}
	})
}
