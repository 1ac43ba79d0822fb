package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

const shop = "https://shop.example"

// cors are the headers of a response that browsers act on.
func (a response) cors() map[string]string {
	found := map[string]string{}
	for name, values := range a.header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
			found[name] = strings.Join(values, "; ")
		}
	}
	return found
}

// TestCORSOff: unless an operator names origins there is no trace of CORS.
func TestCORSOff(t *testing.T) {
	s := start(t)
	origin := http.Header{"Origin": {shop}}
	preflight := http.Header{"Origin": {shop}, "Access-Control-Request-Method": {"GET"}}
	for _, test := range []struct {
		call call
		want int
	}{
		{call{path: "/v1/pets", header: origin}, 200},
		{call{path: "/v1/pets", header: origin, key: noKey}, 401},
		{call{method: "OPTIONS", path: "/v1/pets", header: preflight, key: noKey}, 401},
		{call{method: "OPTIONS", path: "/v1/pets", header: preflight}, 204},
	} {
		got := s.do(t, test.call)
		if got.status != test.want || len(got.cors()) > 0 {
			t.Errorf("%s: got %d %v, want %d and no CORS", test.call.method, got.status, got.cors(), test.want)
		}
	}
}

func TestCORS(t *testing.T) {
	s := start(t, func(with *setup) { with.origins = []string{shop, "http://localhost:3000"} })
	tests := []struct {
		name    string
		method  string
		path    string
		key     string
		origin  []string
		request string // Access-Control-Request-Method
		want    int
		allowed bool
	}{
		{"a preflight needs no key", "OPTIONS", "/v1/pets", noKey, []string{shop}, "POST", 204, true},
		{"a preflight from the other origin", "OPTIONS", "/v1/pets/1", noKey, []string{"http://localhost:3000"}, "GET", 204, true},
		{"a preflight to nowhere", "OPTIONS", "/v1/nothing", noKey, []string{shop}, "GET", 204, true},
		{"a preflight from elsewhere", "OPTIONS", "/v1/pets", noKey, []string{"https://evil.example"}, "POST", 401, false},
		{"a preflight from another port", "OPTIONS", "/v1/pets", noKey, []string{shop + ":8443"}, "POST", 401, false},
		{"a preflight without an origin", "OPTIONS", "/v1/pets", noKey, nil, "POST", 401, false},
		{"OPTIONS that isn't a preflight", "OPTIONS", "/v1/pets", noKey, []string{shop}, "", 401, true},
		{"OPTIONS that isn't a preflight, with a key", "OPTIONS", "/v1/pets", "", []string{shop}, "", 204, true},
		{"a list", "GET", "/v1/pets", "", []string{shop}, "", 200, true},
		{"a refusal can be read", "GET", "/v1/pets", noKey, []string{shop}, "", 401, true},
		{"a list for elsewhere", "GET", "/v1/pets", "", []string{"https://evil.example"}, "", 200, false},
		{"the document", "GET", "/openapi.yaml", noKey, []string{shop}, "", 200, true},
		{"the document for elsewhere", "GET", "/openapi.yaml", noKey, []string{"https://evil.example"}, "", 200, false},
		{"a page", "GET", "/", noKey, []string{shop}, "", 200, false},
		{"a list for two", "GET", "/v1/pets", "", []string{"https://evil.example", shop}, "", 200, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := http.Header{}
			if test.origin != nil {
				header["Origin"] = test.origin
			}
			if test.request != "" {
				header["Access-Control-Request-Method"] = []string{test.request}
				header["Access-Control-Request-Headers"] = []string{"authorization, content-type"}
			}
			got := s.do(t, call{method: test.method, path: test.path, key: test.key, header: header})
			if got.status != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
			headers := got.cors()
			if vary := headers["Vary"]; !strings.HasPrefix(vary, "Origin") && test.path != "/" {
				t.Errorf("Vary: got %q, want Origin", vary)
			}
			want := ""
			if test.allowed {
				want = test.origin[0]
			}
			if got := headers["Access-Control-Allow-Origin"]; got != want {
				t.Errorf("Access-Control-Allow-Origin: got %q, want %q", got, want)
			}
			if got, ok := headers["Access-Control-Allow-Credentials"]; ok {
				t.Errorf("Access-Control-Allow-Credentials: got %q, want none: no cookie is used", got)
			}
			preflight := test.method == "OPTIONS" && test.request != "" && test.allowed
			for _, name := range []string{"Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age"} {
				if _, got := headers[name]; got != preflight {
					t.Errorf("%s: present is %t, want %t", name, got, preflight)
				}
			}
			if _, got := headers["Access-Control-Expose-Headers"]; got != (test.allowed && !preflight) {
				t.Errorf("Access-Control-Expose-Headers: present is %t, want %t", got, test.allowed && !preflight)
			}
		})
	}
}

// TestCORSCoversTheAPI: a page of an allowed origin can use every method and header of
// the API.
func TestCORSCoversTheAPI(t *testing.T) {
	s := start(t, func(with *setup) { with.origins = []string{shop} })
	list := func(value string) []string { return strings.Split(value, ", ") }
	preflight := s.do(t, call{method: "OPTIONS", path: "/v1/pets", key: noKey, header: http.Header{"Origin": {shop}, "Access-Control-Request-Method": {"GET"}}})
	methods := list(preflight.header.Get("Access-Control-Allow-Methods"))
	for _, item := range document().Paths.Map() {
		for method := range item.Operations() {
			if !slices.Contains(methods, method) {
				t.Errorf("got allowed methods %q, want %s among them", methods, method)
			}
		}
	}
	for _, header := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "X-Request-Id"} {
		if got := list(preflight.header.Get("Access-Control-Allow-Headers")); !slices.Contains(got, header) {
			t.Errorf("got allowed headers %q, want %s among them", got, header)
		}
	}
	exposed := list(s.do(t, call{path: "/v1/pets", header: http.Header{"Origin": {shop}}}).header.Get("Access-Control-Expose-Headers"))
	want := map[string]bool{"Allow": true, "Date": true, "ETag": true, "Idempotent-Replayed": true, "Retry-After": true, "X-RateLimit-Limit": true, "X-RateLimit-Remaining": true, "X-RateLimit-Reset": true}
	for _, item := range document().Paths.Map() {
		for _, op := range item.Operations() {
			for _, response := range op.Responses.Map() {
				for header := range response.Value.Headers {
					want[header] = true
				}
			}
		}
	}
	for header := range want {
		// Pages may always read these.
		if slices.Contains([]string{"Cache-Control", "Content-Type", "Content-Length"}, header) {
			continue
		}
		if !slices.Contains(exposed, header) {
			t.Errorf("got exposed headers %q, want %s among them", exposed, header)
		}
	}
}

// TestRequestID: a valid id is kept, any other is replaced.
func TestRequestID(t *testing.T) {
	s := start(t)
	tests := []struct {
		name string
		sent []string
		kept bool
	}{
		{"none", nil, false},
		{"a UUID", []string{"0193262a-5d0e-7c4e-9f43-9b8f6f1f2a11"}, true},
		{"dots and underscores", []string{"a.b_c-d"}, true},
		{"64 characters", []string{strings.Repeat("x", 64)}, true},
		{"65 characters", []string{strings.Repeat("x", 65)}, false},
		{"empty", []string{""}, false},
		{"a blank inside", []string{"a b"}, false},
		{"not UTF-8", []string{"\xff"}, false},
		{"two of them", []string{"a", "b"}, false},
	}
	made := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, c := range []call{{path: "/v1/pets"}, {path: "/v1/pets", key: noKey}, {path: "/v1/x"}, {path: "/livez"}} {
				c.header = http.Header{"X-Request-Id": test.sent}
				got := s.do(t, c).header.Get("X-Request-Id")
				switch {
				case test.kept && got != test.sent[0]:
					t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, test.sent[0])
				case !test.kept && (slices.Contains(test.sent, got) || made[got] || !validRequestID.MatchString(got)):
					t.Errorf("%s %s: got %q, want a new id", c.method, c.path, got)
				}
				made[got] = true
			}
		})
	}
}

// TestAccessLog: one line per request, without secrets. A failed one has its code, and the id
// of the key if its secret is known, valid or not.
func TestAccessLog(t *testing.T) {
	s := start(t, func(with *setup) { with.accessLog = true })
	s.do(t, call{method: "POST", path: "/v1/pets?hidden=query", body: `{"name":"hidden-name","categoryId":7}`, header: http.Header{"X-Request-Id": {"one"}}}).want(t, http.StatusCreated, "")
	s.do(t, call{path: "/v1/pets", key: "hidden-key-made-elsewhere", header: http.Header{"X-Request-Id": {"two"}}}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
	revoked, keyID := s.with(t, readWrite, nil)
	s.revoke(t, keyID)
	s.do(t, call{path: "/v1/pets", key: revoked, header: http.Header{"X-Request-Id": {"three"}}}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
	if got := s.log.lines("request_id=three", "code=invalid_api_key", fmt.Sprint("key_id=", keyID)); len(got) != 1 {
		t.Errorf("got %q, want a line with the code and the key %d", s.log.lines("request_id=three"), keyID)
	}
	s.do(t, call{path: "/docs/nothing", header: http.Header{"X-Request-Id": {"four"}}}) // the response is a page
	if got := s.log.lines("request_id=four", "status=404 code=route_not_found"); len(got) != 1 {
		t.Errorf("got %q, want a line with the code", s.log.lines("request_id=four"))
	}
	if got := s.log.lines("request_id=one", "code="); len(got) != 0 {
		t.Errorf("got %q, want no code", got)
	}
	for id, want := range map[string]string{"one": "method=POST path=/v1/pets status=201", "two": "method=GET path=/v1/pets status=401 code=invalid_api_key"} {
		if got := s.log.lines("request_id="+id, want, " client=127.0.0.1 "); len(got) != 1 {
			t.Errorf("request %s: got %q, want one line with %q", id, s.log.lines("request_id="+id), want)
		}
	}
	for _, secret := range []string{"hidden", s.owner, s.owner[9:]} {
		if got := s.log.lines(secret); len(got) > 0 {
			t.Errorf("got %q in the log, want nothing with %q", got, secret)
		}
	}
}
