package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// TestCodesAreTheDocument: the domain and the document have the same codes, and each its
// status. That responses have it too is checked whenever they come up, as all do: see TestMain.
func TestCodesAreTheDocument(t *testing.T) {
	domain := slices.Sorted(slices.Values(animalstore.Codes))
	var documented []animalstore.Code
	schema := document().Components.Schemas["ErrorCode"].Value
	listed, _ := schema.Extensions["x-extensible-enum"].([]any)
	for _, code := range listed {
		documented = append(documented, animalstore.Code(code.(string)))
	}
	slices.Sort(documented)
	if !slices.Equal(documented, domain) {
		t.Errorf("codes of the document: got %q\nwant %q, as in the domain", documented, domain)
	}
	for _, code := range documented {
		if row := fmt.Sprintf("| `%s` | %d |", code, code.Status()); !strings.Contains(schema.Description, row) {
			t.Errorf("got no row %q in the document's table of codes", row)
		}
	}
}

// inDocument is an operation as the document describes it.
func inDocument(id string) *openapi3.Operation {
	for _, o := range documentedOperations() {
		if o.route.Operation.OperationID == id {
			return o.route.Operation
		}
	}
	panic(id + " is not in the document")
}

// TestEveryOperation provokes of each operation what they have in common, and
// finds it documented exactly where it comes up.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	for _, op := range operations {
		t.Run(op.id, func(t *testing.T) {
			documented := inDocument(op.id).Responses
			provoke := func(status int, code animalstore.Code, change func(*call)) {
				t.Helper()
				c := op.call(t, s)
				c.key, c.bad = s.admin, true
				change(&c)
				got := s.do(t, c)
				if got.status != status || got.code() != code {
					t.Errorf("got %v, want %d %s", got, status, code)
				}
				if documented.Status(status) == nil {
					t.Errorf("got %d, want it documented", status)
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
			} else if documented.Status(415) != nil || documented.Status(413) != nil {
				t.Error("got 413 or 415 documented, want neither: it reads no body")
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
		// References to components lead to these next to the schema.
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
