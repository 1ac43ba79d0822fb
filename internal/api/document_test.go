package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/photo"
	"animalstore/internal/testenv"
	"animalstore/openapi"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

var document = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML)
	if err != nil {
		panic(err)
	}
	doc.Servers = openapi3.Servers{{URL: "/v1"}}
	for _, contentType := range photo.ContentTypes {
		openapi3filter.RegisterBodyDecoder(contentType, openapi3filter.FileBodyDecoder)
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil {
				alsoAccept(op.RequestBody.Value)
			}
		}
	}
	return doc
})

// responseDocument is the document as the service must keep to it. The one that
// clients read leaves room for growth: this one has no field and no form of a time
// in addition to those that the service has now.
var responseDocument = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML)
	if err != nil {
		panic(err)
	}
	closed := false
	for _, schema := range doc.Components.Schemas {
		err := schema.WalkSubtree(func(_ string, s *openapi3.SchemaRef) error {
			switch {
			case s.Value.Type.Is("object") && len(s.Value.Properties) > 0:
				s.Value.AdditionalProperties.Has = &closed
			case s.Value.Format == "date-time":
				s.Value.Pattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	return doc
})

// alsoAccept adds the media types under x-also-accepts, which generators can't
// handle, to those of a request.
func alsoAccept(body *openapi3.RequestBody) {
	also, _ := body.Extensions["x-also-accepts"].([]any)
	for _, media := range maps.Collect(maps.All(body.Content)) {
		for _, kind := range also {
			body.Content[kind.(string)] = media
		}
	}
}

// badRequest marks, in a request's context, one that breaks the document on
// purpose.
type badRequest struct{}

// checkingTransport fails every exchange that the document or checkAlways does
// not allow.
type checkingTransport struct {
	base http.RoundTripper
	now  func() time.Time // the server's clock
}

func (c *checkingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	bad, _ := r.Context().Value(badRequest{}).(bool)
	var sent bytes.Buffer
	out := r.Clone(r.Context())
	if !bad && r.Body != nil && r.Body != http.NoBody {
		out.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &sent), r.Body}
	}
	res, err := c.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "text/event-stream" && r.Method != http.MethodHead {
		return nil, errors.New("got a stream, which doesn't end: openStream is for these")
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	e := exchange{method: r.Method, url: r.URL, header: r.Header, status: res.StatusCode, answered: res.Header, body: body, now: c.now()}
	if !bad {
		e.validRequest = sent.Bytes()
		if e.validRequest == nil {
			e.validRequest = []byte{}
		}
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	return res, nil
}

// exchange is a request and its response.
type exchange struct {
	method       string
	url          *url.URL
	header       http.Header
	validRequest []byte // the request's body; nil: the request need not keep to the document
	status       int
	answered     http.Header
	body         []byte
	now          time.Time // by the server's clock
}

// check describes how the exchange breaks the contract.
func (e *exchange) check() error {
	if got := e.answered["X-Content-Type-Options"]; len(got) != 1 || got[0] != "nosniff" {
		return fmt.Errorf("X-Content-Type-Options: got %q, want nosniff", got)
	}
	if path := e.url.Path; path != "/v1" && !strings.HasPrefix(path, "/v1/") {
		return e.checkError()
	}
	if err := errors.Join(e.checkAlways(), e.checkLimits(), e.checkError()); err != nil {
		return fmt.Errorf("%w\nin response %d %v %s", err, e.status, e.answered, e.body)
	}
	route, params := e.route()
	if route == nil {
		return nil
	}
	if err := e.checkOperation(route, params); err != nil {
		return err
	}
	provoked.add(route.Operation.OperationID, e.method, e.status)
	return nil
}

// checkOperation holds the exchange to the operation it belongs to.
func (e *exchange) checkOperation(route *routers.Route, params map[string]string) error {
	// The first 20 of an operation and status are enough, except in a soak.
	if !testenv.Soak && provoked.count(route.Operation.OperationID, e.status) >= 20 {
		return nil
	}
	if err := e.checkRequest(route, params); err != nil {
		return err
	}
	return e.checkResponse(route)
}

// good remembers requests and errors that keep to the document, whose checks are slow:
// the schema of a request is compiled for each.
var good = &memory{seen: map[string]bool{}}

type memory struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (m *memory) has(s string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[s]
}

func (m *memory) add(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) > 10_000 {
		clear(m.seen)
	}
	m.seen[s] = true
}

// route is the operation of the document that a request means, or nil. An
// unclean path means none.
func (e *exchange) route() (*routers.Route, map[string]string) {
	method := e.method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if strings.Contains(strings.ToLower(e.url.EscapedPath()), "%2f") {
		return nil, nil
	}
	given, path := strings.Split(e.url.Path, "/")[1:], ""
	for _, o := range documentedOperations() {
		params, ok := match(o.template, given)
		if !ok {
			continue
		}
		path = cmp.Or(path, o.route.Path) // regardless of its methods
		if o.route.Path == path && o.route.Method == method {
			return &o.route, params
		}
	}
	return nil, nil
}

type documentedOperation struct {
	template []string // the parts of its path
	route    routers.Route
}

// documentedOperations are those of the document. Of paths that match the same request,
// the one with fewer parameters is first.
var documentedOperations = sync.OnceValue(func() (all []documentedOperation) {
	for path, item := range document().Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, documentedOperation{strings.Split("v1"+path, "/"),
				routers.Route{Spec: document(), Path: path, PathItem: item, Method: method, Operation: op}})
		}
	}
	slices.SortFunc(all, func(a, b documentedOperation) int {
		return cmp.Compare(strings.Count(a.route.Path, "{"), strings.Count(b.route.Path, "{"))
	})
	return all
})

func match(template, given []string) (map[string]string, bool) {
	if len(template) != len(given) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range template {
		got := given[i]
		switch {
		case got == "" || got == "." || got == "..":
			return nil, false
		case strings.HasPrefix(want, "{"):
			params[strings.Trim(want, "{}")] = got
		case got != want:
			return nil, false
		}
	}
	return params, true
}

// checkRequest is for requests that mean to keep to the document.
func (e *exchange) checkRequest(route *routers.Route, params map[string]string) error {
	if e.validRequest == nil {
		return nil
	}
	request := fmt.Sprintf("%s %s %v %s", route.Operation.OperationID, e.url, e.header, e.validRequest)
	if good.has(request) {
		return nil
	}
	if err := openapi3filter.ValidateRequest(context.Background(), e.input(route, params)); err != nil {
		return fmt.Errorf("%s: request: %w", route.Operation.OperationID, err)
	}
	good.add(request)
	return nil
}

func (e *exchange) checkResponse(route *routers.Route) error {
	op := responseDocument().Paths.Value(route.Path).GetOperation(route.Method)
	if err := e.checkCode(op); err != nil {
		return err
	}
	response := op.Responses.Status(e.status)
	if response == nil {
		return fmt.Errorf("%s: got status %d, which the document doesn't have", op.OperationID, e.status)
	}
	err := checkHeader(e.answered, response.Value.Headers)
	if content := response.Value.Content; len(content) > 0 && e.method != http.MethodHead {
		media := content.Get(e.answered.Get("Content-Type"))
		if media == nil {
			return fmt.Errorf("%s: response %d: got Content-Type %q, which the document doesn't have", op.OperationID, e.status, e.answered["Content-Type"])
		}
		if !e.isImage() {
			err = errors.Join(err, checkBody(e.body, media.Schema.Value))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: response %d %s: %w", op.OperationID, e.status, e.body, err)
	}
	return nil
}

// checkCode expects the code of an error to be one that the document lists for the
// operation and status.
func (e *exchange) checkCode(op *openapi3.Operation) error {
	response := op.Responses.Status(e.status)
	if e.status < 400 || e.method == http.MethodHead || response == nil {
		return nil
	}
	var body struct{ Code string }
	if err := json.Unmarshal(e.body, &body); err != nil {
		return err
	}
	codes, _ := response.Value.Extensions["x-codes"].([]any)
	if !slices.Contains(codes, any(body.Code)) {
		return fmt.Errorf("%s: response %d: got code %q, want one of %q", op.OperationID, e.status, body.Code, codes)
	}
	return nil
}

// input is the request as the validator wants it: HEAD as the GET it stands for.
func (e *exchange) input(route *routers.Route, params map[string]string) *openapi3filter.RequestValidationInput {
	return &openapi3filter.RequestValidationInput{
		Request:    &http.Request{Method: route.Method, URL: e.url, Header: e.header, Body: io.NopCloser(bytes.NewReader(e.validRequest))},
		PathParams: params,
		Route:      route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc,
			SkipSettingDefaults: true,
			MultiError:          true,
		},
	}
}

// isImage reports whether the response is an image: those of photos are the only bodies
// that aren't JSON.
func (e *exchange) isImage() bool {
	path := e.url.Path
	image := strings.HasPrefix(path, "/v1/photos/") && (strings.HasSuffix(path, "/image") || strings.HasSuffix(path, "/thumbnail"))
	return image && e.status == http.StatusOK && strings.HasPrefix(e.answered.Get("Content-Type"), "image/")
}

// checkAlways is what every response under /v1 keeps to, regardless of its status and
// whether or not there is an operation. It is the place for further headers
// that all of them carry.
func (e *exchange) checkAlways() error {
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }

	if id := e.answered["X-Request-Id"]; len(id) != 1 || !validRequestID.MatchString(id[0]) {
		complain("X-Request-Id: got %q, want one id", id)
	}
	for name, values := range e.answered {
		if len(values) != 1 {
			complain("%s: got %d lines %q, want one", name, len(values), values)
		}
	}
	if e.status < 200 || e.status >= 300 && e.status < 400 && e.status != http.StatusNotModified {
		complain("got status %d, want neither an interim response nor a redirect", e.status)
	}
	bodiless := e.status == http.StatusNoContent || e.status == http.StatusNotModified
	mayHaveBody := e.method != http.MethodHead && !bodiless
	switch contentType := e.answered.Get("Content-Type"); {
	case bodiless && contentType != "":
		complain("Content-Type: got %q without a body, want none", contentType)
	case e.isImage():
	case !bodiless && contentType != "application/json":
		complain("Content-Type: got %q, want application/json", contentType)
	}
	switch length := e.answered.Get("Content-Length"); {
	case mayHaveBody && length != strconv.Itoa(len(e.body)):
		complain("Content-Length: got %q, want %d", length, len(e.body))
	case e.isImage():
	case mayHaveBody && (!json.Valid(e.body) || !bytes.HasSuffix(e.body, []byte("\n"))):
		complain("got a body that is not one line of JSON: %q", e.body)
	case !mayHaveBody && len(e.body) > 0:
		complain("got a body of %d bytes, want none", len(e.body))
	}
	for _, only := range []struct {
		header string
		want   bool
	}{
		{"WWW-Authenticate", e.status == http.StatusUnauthorized},
		{"Retry-After", e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests},
		{"Location", e.status == http.StatusCreated && e.url.Path != batchPath},
		{"Accept-Patch", e.status == http.StatusUnsupportedMediaType && e.method == http.MethodPatch || e.method == http.MethodOptions && strings.Contains(e.answered.Get("Allow"), http.MethodPatch)},
		{"Accept-Encoding", e.status == http.StatusUnsupportedMediaType && e.header.Get("Content-Encoding") != ""},
		{"Allow", e.status == http.StatusMethodNotAllowed || e.method == http.MethodOptions && e.status == http.StatusNoContent && e.answered.Get("Access-Control-Allow-Methods") == ""},
	} {
		if _, got := e.answered[http.CanonicalHeaderKey(only.header)]; got != only.want {
			complain("%s: present is %t, want %t", only.header, got, only.want)
		}
	}
	if route, _ := e.route(); route == nil && !slices.Contains(withoutOperation, e.status) {
		complain("got status %d outside any operation, want one of %d", e.status, withoutOperation)
	}
	return errors.Join(wrong...)
}

// withoutOperation are the statuses of requests that match no operation.
var withoutOperation = []int{204, 401, 403, 404, 405, 429, 500, 503}

// codesOf are the codes each status may carry.
var codesOf = map[int][]animalstore.Code{
	400: {"malformed_json", "validation_failed", "invalid_parameter", "invalid_cursor", "invalid_image"},
	401: {"missing_api_key", "invalid_api_key"},
	403: {"insufficient_permission", "key_suspended", "address_not_allowed"},
	404: {"pet_not_found", "order_not_found", "category_not_found", "key_not_found", "webhook_not_found", "delivery_not_found", "photo_not_found", "route_not_found"},
	405: {"method_not_allowed"},
	409: {"invalid_transition", "pet_not_available", "last_admin_key", "would_lock_out", "too_many_webhooks", "too_many_photos"},
	410: {"endpoint_removed", "events_expired"},
	412: {"precondition_failed"},
	413: {"payload_too_large"},
	415: {"unsupported_media_type"},
	422: {"idempotency_key_reused"},
	429: {"rate_limit_exceeded", "daily_quota_exceeded", "key_banned", "too_many_streams"},
	500: {"internal_error"},
	503: {"unavailable", "storage_full", "overloaded", "shutting_down"},
}

// checkError checks that an error response matches the Error schema and that its message
// reveals no internals. Missing pages under /docs/ are HTML instead.
func (e *exchange) checkError() error {
	if e.status < 400 || e.method == http.MethodHead || e.status == http.StatusNotFound && strings.HasPrefix(e.url.Path, "/docs/") {
		return nil
	}
	var value map[string]any
	if err := json.Unmarshal(e.body, &value); err != nil {
		return fmt.Errorf("got an error that isn't a JSON object: %w", err)
	}
	if good.has(strconv.Itoa(e.status) + string(e.body)) {
		return nil
	}
	var wrong []error
	if err := checkBody(e.body, responseDocument().Components.Schemas["Error"].Value); err != nil {
		wrong = append(wrong, err)
	}
	if value["status"] != float64(e.status) {
		wrong = append(wrong, fmt.Errorf("status in the body: got %v, want %d", value["status"], e.status))
	}
	code, _ := value["code"].(string)
	if !slices.Contains(codesOf[e.status], animalstore.Code(code)) {
		wrong = append(wrong, fmt.Errorf("code: got %q, want one of %q with status %d", code, codesOf[e.status], e.status))
	}
	if leak := leaks.FindString(fmt.Sprint(value["message"])); leak != "" {
		wrong = append(wrong, fmt.Errorf("message: got %q, which leaks %q", value["message"], leak))
	}
	if len(wrong) == 0 {
		provoked.addCode(animalstore.Code(code))
		good.add(strconv.Itoa(e.status) + string(e.body))
	}
	return errors.Join(wrong...)
}
