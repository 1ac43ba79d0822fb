package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/api"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestRoutesAreTheDocument: every route is an operation of the document and the
// other way round.
func TestRoutesAreTheDocument(t *testing.T) {
	var got, want []string
	for _, op := range api.Operations() {
		got = append(got, op.Method+" "+op.Path+" "+op.ID)
	}
	for path, item := range document().Paths.Map() {
		for method, op := range item.Operations() {
			want = append(want, method+" /v1"+path+" "+op.OperationID)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, route := range got {
		if !slices.Contains(want, route) {
			t.Errorf("route %s is not in the document", route)
		}
	}
	for _, op := range want {
		if !slices.Contains(got, op) {
			t.Errorf("operation %s has no route", op)
		}
	}
}

// TestCodesAreTheDocument: the domain, the server and the document have the
// same codes, and each has one status.
func TestCodesAreTheDocument(t *testing.T) {
	domain := slices.Sorted(slices.Values(animalstore.Codes))
	var documented []animalstore.Code
	listed, _ := document().Components.Schemas["ErrorCode"].Value.Extensions["x-extensible-enum"].([]any)
	for _, code := range listed {
		documented = append(documented, animalstore.Code(code.(string)))
	}
	slices.Sort(documented)
	if !slices.Equal(documented, domain) {
		t.Errorf("codes of the document: got %q\nwant %q, as in the domain", documented, domain)
	}
	if len(slices.Compact(slices.Clone(domain))) != len(domain) {
		t.Errorf("codes of the domain: got %q, want each once", domain)
	}
	statuses := map[animalstore.Code]int{}
	for status, codes := range codesOf {
		for _, code := range codes {
			statuses[code] = status
		}
	}
	for _, code := range domain {
		if got, want := api.StatusOf[code], statuses[code]; got != want || want == 0 {
			t.Errorf("status of %s: got %d, want %d", code, got, want)
		}
	}
	if len(api.StatusOf) != len(domain) {
		t.Errorf("got statuses for %d codes, want %d", len(api.StatusOf), len(domain))
	}
}

func TestDocumentIsStrict(t *testing.T) {
	for path, item := range document().Paths.Map() {
		for method, op := range item.Operations() {
			if op.Responses.Default() != nil {
				t.Errorf("%s %s: got a default response, want none", method, path)
			}
		}
	}
}

// TestCheckGoesRed breaks a good response in one place at a time: the check that
// every exchange of this suite passes must notice.
func TestCheckGoesRed(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted}).want(t, http.StatusOK, "")
	const list, pet, nothing = "/v1/pets", "/v1/pets/1", "/v1/nothing"
	replace := func(old, new string) func(*http.Response, string) string {
		return func(_ *http.Response, body string) string {
			if !strings.Contains(body, old) {
				t.Errorf("got %s, want %s in it to break", body, old)
			}
			return strings.Replace(body, old, new, 1)
		}
	}
	set := func(name string, values ...string) func(*http.Response, string) string {
		return func(r *http.Response, body string) string {
			r.Header[name] = values
			return body
		}
	}
	drop := func(name string) func(*http.Response, string) string {
		return func(r *http.Response, body string) string { r.Header.Del(name); return body }
	}
	status := func(status int) func(*http.Response, string) string {
		return func(r *http.Response, body string) string { r.StatusCode = status; return body }
	}
	tests := []struct {
		name  string
		call  call
		spoil func(*http.Response, string) string
		want  string // in the complaint; "": none
	}{
		{"nothing", call{path: list}, replace("", ""), ""},
		{"no request id", call{path: list}, set("X-Request-Id"), "X-Request-Id"},
		{"two request ids", call{path: list}, set("X-Request-Id", "a", "b"), "X-Request-Id"},
		{"no nosniff", call{path: list}, drop("X-Content-Type-Options"), "X-Content-Type-Options"},
		{"no nosniff on a page", call{path: "/docs", key: noKey}, drop("X-Content-Type-Options"), "X-Content-Type-Options"},
		{"no Accept-Patch", call{method: "OPTIONS", path: pet}, drop("Accept-Patch"), "Accept-Patch"},
		{"no limit", call{path: list}, drop("X-Ratelimit-Limit"), "X-RateLimit-Limit"},
		{"nothing of what remains", call{path: nothing}, drop("X-Ratelimit-Remaining"), "X-RateLimit-Remaining"},
		{"no reset without a key", call{path: nothing, key: noKey}, drop("X-Ratelimit-Reset"), "X-RateLimit-Reset"},
		{"two limits", call{path: list}, set("X-Ratelimit-Limit", "1", "1"), "X-Ratelimit-Limit"},
		{"a limit of words", call{path: list}, set("X-Ratelimit-Limit", "many"), "X-RateLimit-Limit"},
		{"a fraction remaining", call{path: list}, set("X-Ratelimit-Remaining", "1.0"), "X-RateLimit-Remaining"},
		{"less than nothing remaining", call{path: list}, set("X-Ratelimit-Remaining", "-1"), "X-RateLimit-Remaining"},
		{"more remaining than there is", call{path: list}, set("X-Ratelimit-Remaining", "9000000000000"), "X-RateLimit-Remaining"},
		{"a reset that is over", call{path: list}, set("X-Ratelimit-Reset", "1794744000"), "X-RateLimit-Reset"},
		{"a reset in milliseconds", call{path: list}, set("X-Ratelimit-Reset", "1794744060000"), "X-RateLimit-Reset"},
		{"a reset as a span", call{path: list}, set("X-Ratelimit-Reset", "60"), "X-RateLimit-Reset"},
		{"429 with some left", call{path: list, key: exhausted}, set("X-Ratelimit-Remaining", "1"), "with 429"},
		{"429 without Retry-After", call{path: list, key: exhausted}, drop("Retry-After"), "Retry-After"},
		{"429 with a shorter Retry-After", call{path: list, key: exhausted}, set("Retry-After", "59"), "Retry-After"},
		{"429 with a longer Retry-After", call{path: list, key: exhausted}, set("Retry-After", "61"), "Retry-After"},
		{"429 with a date to retry after", call{path: list, key: exhausted}, set("Retry-After", "Sun, 15 Nov 2026 12:01:00 GMT"), "Retry-After"},
		{"429 with a code of another status", call{path: list, key: exhausted}, replace("rate_limit_exceeded", "overloaded"), "overloaded"},
		{"Retry-After without need", call{path: list}, set("Retry-After", "1"), "Retry-After"},
		{"no Link", call{path: list}, drop("Link"), "Link"},
		{"a Link elsewhere", call{path: list}, set("Link", `</pets>; rel="first"`), "Link"},
		{"a second Link", call{path: list}, set("Link", `</v1/pets>; rel="first"`, "x"), "Link"},
		{"another media type", call{path: list}, set("Content-Type", "text/plain"), "Content-Type"},
		{"an extra field", call{path: list}, replace(`"id":1`, `"age":3,"id":1`), "age"},
		{"a missing field", call{path: list}, replace(`,"categoryId":7`, ``), "categoryId"},
		{"an unknown status of a pet", call{path: pet}, replace(`"available"`, `"lost"`), "status"},
		{"an id as a string", call{path: pet}, replace(`"id":1`, `"id":"1"`), "id"},
		{"an undocumented status", call{path: pet}, status(202), "status 202, which the document"},
		{"a redirect", call{path: pet}, status(301), "redirect"},
		{"no Sunset", call{path: pet}, set("Sunset"), "Sunset"},
		{"another Sunset", call{path: pet}, set("Sunset", "Fri, 06 Dec 2030 00:00:00 GMT"), "Sunset"},
		{"no Deprecation", call{path: pet}, drop("Deprecation"), "Deprecation"},
		{"no Deprecation on HEAD", call{method: "HEAD", path: pet}, drop("Deprecation"), "Deprecation"},
		{"a body on HEAD", call{method: "HEAD", path: pet}, func(*http.Response, string) string { return "x" }, "body"},
		{"not JSON", call{path: list}, func(*http.Response, string) string { return "x" }, "JSON"},
		{"a challenge without need", call{path: list}, set("Www-Authenticate", "Bearer"), "WWW-Authenticate"},
		{"no challenge", call{path: list, key: noKey}, drop("Www-Authenticate"), "WWW-Authenticate"},
		{"another challenge", call{path: list, key: noKey}, set("Www-Authenticate", `Basic realm="x"`), "WWW-Authenticate"},
		{"an extra field of an error", call{path: list, key: noKey}, replace(`"code"`, `"detail":"x","code"`), "detail"},
		{"a missing field of an error", call{path: nothing}, replace(`,"status":404`, ``), "status"},
		{"another status in the body", call{path: nothing}, replace(`"status":404`, `"status":400`), "want 404"},
		{"an unknown code", call{path: nothing}, replace("route_not_found", "no_route"), "no_route"},
		{"a code of another status", call{path: nothing}, replace("route_not_found", "method_not_allowed"), "method_not_allowed"},
		{"a code of another operation", call{path: "/v1/pets/9"}, replace("pet_not_found", "route_not_found"), "code"},
		{"an empty message", call{path: nothing}, func(r *http.Response, _ string) string {
			return `{"code":"route_not_found","message":"","status":404}` + "\n"
		}, "message"},
		{"a leak", call{path: nothing}, replace("there is", "SQLite says there is"), "SQLite"},
		{"a leak of a path", call{path: nothing}, replace("there is", "/tmp/store.db"), "/tmp/"},
		{"no Allow", call{method: "PUT", path: list}, drop("Allow"), "Allow"},
		{"success outside the document", call{path: nothing}, status(200), "outside any operation"},
		{"a request that breaks the document", call{path: "/v1/pets?limit=0"}, replace("", ""), "limit"},
		{"one that does so on purpose", call{path: "/v1/pets?limit=0", bad: true}, replace("", ""), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spoiled := *s
			spoiled.client = checkingClient(spoiler{s.client.Transport.(*checkingTransport).base, test.spoil}, s.clock.Now)
			spoiled.client.Transport.(*checkingTransport).many = false
			_, err := spoiled.send(t.Context(), test.call)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no complaint", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want a complaint about %s", err, test.want)
			}
		})
	}
}

// spoiler changes responses on their way.
type spoiler struct {
	http.RoundTripper
	spoil func(*http.Response, string) string
}

func (s spoiler) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	length := len(body)
	body = []byte(s.spoil(res, string(body)))
	if res.Header.Get("Content-Length") != "" && len(body) != length && r.Method != http.MethodHead {
		res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	res.Body = io.NopCloser(strings.NewReader(string(body)))
	return res, nil
}

// TestCoverageGoesRed: a suite that saw nothing misses everything.
func TestCoverageGoesRed(t *testing.T) {
	none := &coverage{statuses: map[string]int{"listPets 200": 1}, codes: map[animalstore.Code]bool{animalstore.StorageFull: true}}
	missing := none.missing()
	for _, want := range []string{"getPet 410", "createPet 413", "listOrders 503", "overloaded"} {
		if !slices.Contains(missing, want) {
			t.Errorf("got missing %q, want %q among them", missing, want)
		}
	}
	for _, seen := range []string{"listPets 200", "storage_full"} {
		if slices.Contains(missing, seen) {
			t.Errorf("got missing %q, want %q not among them", missing, seen)
		}
	}
}

// documented is the operation as the document has it.
func documented(t testing.TB, id string) []int {
	t.Helper()
	for _, item := range document().Paths.Map() {
		for _, op := range item.Operations() {
			if op.OperationID == id {
				statuses := []int{}
				for status := range op.Responses.Map() {
					statuses = append(statuses, int(atoi(t, status)))
				}
				return statuses
			}
		}
	}
	t.Fatalf("%s is not in the document", id)
	return nil
}

// TestEveryOperation provokes of each operation what they have in common, and
// finds it documented exactly where it comes up.
func TestEveryOperation(t *testing.T) {
	s := start(t)
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	for _, op := range operations {
		t.Run(op.id, func(t *testing.T) {
			statuses := documented(t, op.id)
			provoke := func(status int, code animalstore.Code, change func(*call)) {
				t.Helper()
				c := op.call(t, s)
				c.key, c.bad = s.admin, true
				change(&c)
				got := s.do(t, c)
				if got.status != status || got.code() != code {
					t.Errorf("got %v, want %d %s", got, status, code)
				}
				if !slices.Contains(statuses, status) {
					t.Errorf("got %d, want it documented along with %d", status, statuses)
				}
			}
			provoke(401, "missing_api_key", func(c *call) { c.key = noKey })
			provoke(429, "rate_limit_exceeded", func(c *call) { c.key = exhausted })
			c := op.call(t, s)
			if c.reads() {
				provoke(304, "", func(c *call) { c.header = http.Header{"If-None-Match": {"*"}} })
				provoke(412, "precondition_failed", func(c *call) { c.header = http.Header{"If-Match": {`"x"`}} })
			}
			if c.body != "" {
				malformed, most := animalstore.MalformedJSON, api.MaxBody
				if op.id == "addPhoto" {
					malformed, most = animalstore.InvalidImage, animalstore.MaxUpload
				}
				provoke(400, malformed, func(c *call) { c.body = "{" })
				provoke(413, "payload_too_large", func(c *call) { c.body = bodyOf(most + 1) })
				provoke(415, "unsupported_media_type", func(c *call) { c.header = http.Header{"Content-Type": {"text/plain"}} })
			} else if slices.Contains(statuses, 415) || slices.Contains(statuses, 413) {
				t.Errorf("got %d documented, want neither 413 nor 415: it reads no body", statuses)
			}
		})
	}
}

// schemas are the schemas of responseDocument that were needed, compiled. kin-openapi
// would compile one again for each value, which takes most of the time of a check.
var schemas = struct {
	sync.Mutex
	compiled map[*openapi3.Schema]*jsonschema.Schema
}{compiled: map[*openapi3.Schema]*jsonschema.Schema{}}

// compile returns a schema of responseDocument, compiled.
func compile(schema *openapi3.Schema) *jsonschema.Schema {
	schemas.Lock()
	defer schemas.Unlock()
	if schemas.compiled[schema] == nil {
		// References to components lead to these beside the schema.
		text := must(json.Marshal(schema))
		resource := must(jsonschema.UnmarshalJSON(bytes.NewReader(text))).(map[string]any)
		resource["components"] = components()
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		c.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
		if err := c.AddResource("schema.json", resource); err != nil {
			panic(err)
		}
		schemas.compiled[schema] = must(c.Compile("schema.json"))
	}
	return schemas.compiled[schema]
}

var components = sync.OnceValue(func() any {
	return must(jsonschema.UnmarshalJSON(bytes.NewReader(must(json.Marshal(responseDocument().Components)))))
})

func isInt64(v any) error {
	if n, ok := v.(json.Number); ok {
		_, err := n.Int64()
		return err
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// checkBody holds a JSON text to a schema.
func checkBody(body []byte, schema *openapi3.Schema) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return compile(schema).Validate(value)
}

// checkHeader holds the fields of a header to those that the document describes.
func checkHeader(header http.Header, described openapi3.Headers) error {
	var wrong []error
	for name, field := range described {
		text, present := header[http.CanonicalHeaderKey(name)]
		switch {
		case !present && field.Value.Required:
			wrong = append(wrong, fmt.Errorf("%s: want it in the header", name))
		case present:
			var value any = text[0]
			if _, err := strconv.ParseInt(text[0], 10, 64); err == nil && field.Value.Schema.Value.Type.Is("integer") {
				value = json.Number(text[0])
			}
			if err := compile(field.Value.Schema.Value).Validate(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// TestParameterExamplesWork sends the example of each parameter of each GET on its
// own, as the docs page and other programs do.
func TestParameterExamplesWork(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	s.do(t, call{method: "POST", path: "/v1/store/orders", body: `{"petId":1}`}).want(t, http.StatusCreated, "")
	s.addPhoto(t, 1)
	ids := strings.NewReplacer("{petId}", "1", "{photoId}", "1", "{orderId}", "1", "{categoryId}", "7", "{keyId}", "1", "{webhookId}", "1", "{deliveryId}", "1")
	webhook := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	s.do(t, call{method: "POST", path: webhook + "/ping", key: s.admin}).want(t, http.StatusAccepted, "")
	key, sent := s.key(t, everything), 0
	for path, item := range document().Paths.Map() {
		if item.Get == nil {
			continue
		}
		for _, p := range item.Get.Parameters {
			if p.Value.Example == nil || p.Value.In == "path" {
				continue
			}
			request := call{path: "/v1" + ids.Replace(path), key: key}
			example, query := exampleOf(p.Value), requiredQuery(item.Get)
			if p.Value.In == "header" {
				request.header = http.Header{p.Value.Name: {example}}
			} else {
				query.Set(p.Value.Name, example)
			}
			if len(query) > 0 {
				request.path += "?" + query.Encode()
			}
			if got := s.do(t, request); got.status != http.StatusOK {
				t.Errorf("GET %s with %s %s: got %v, want 200", path, p.Value.Name, example, got)
			}
			sent++
		}
	}
	if sent < 20 {
		t.Errorf("got %d examples, want those of all lists", sent)
	}
}

// exampleOf returns the example of a parameter as it is sent.
func exampleOf(p *openapi3.Parameter) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Example), " ", ","), "[]")
}

// requiredQuery returns the parameters that an operation doesn't work without.
func requiredQuery(op *openapi3.Operation) url.Values {
	query := url.Values{}
	for _, p := range op.Parameters {
		if p.Value.In == "query" && p.Value.Required {
			query.Set(p.Value.Name, exampleOf(p.Value))
		}
	}
	return query
}
