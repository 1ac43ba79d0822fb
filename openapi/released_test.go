package openapi

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var release = flag.Bool("release", false, "copy openapi.yaml to the released document, unless it breaks clients")

const releasedFile = "released/v1.yaml"

// today is openapi.yaml.
var today = sync.OnceValue(func() object {
	root, err := tree(YAML)
	if err != nil {
		panic(err)
	}
	return root
})

// TestNothingBreaks checks that clients of the released document keep working.
func TestNothingBreaks(t *testing.T) {
	text, err := os.ReadFile(releasedFile)
	switch {
	case errors.Is(err, fs.ErrNotExist): // there has been no release
	case err != nil:
		t.Fatal(err)
	default:
		released, err := tree(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range breaking(released, today()) {
			t.Errorf("%s (compared with %s)", wrong, releasedFile)
		}
	}
	if !*release || t.Failed() {
		return
	}
	if err := os.MkdirAll(filepath.Dir(releasedFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(releasedFile, YAML, 0o644); err != nil {
		t.Fatal(err)
	}
}

// smallDocument has one of each thing that breaking compares.
const smallDocument = `openapi: 3.1.0
security: [{key: []}]
paths:
  /toys:
    get:
      operationId: list
      description: Lists toys.
      parameters: [{name: color, in: query, schema: {type: string, enum: [red, blue]}}]
      responses:
        "200":
          headers: {Link: {required: true, schema: {type: string}}}
          content: {application/json: {schema: {$ref: "#/components/schemas/Toy"}}}
        "400": {x-codes: [invalid_parameter]}
    post:
      operationId: add
      requestBody: {content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string, maxLength: 20}, color: {type: string}}}}}}
      responses:
        "201": {}
components:
  schemas:
    Toy: {type: object, required: [id, state], properties: {id: {type: integer}, state: {type: string, enum: [new, worn]}}}
`

// TestBreaking: each change of the document that would break a client is found, and growth
// isn't.
func TestBreaking(t *testing.T) {
	old, err := tree([]byte(smallDocument))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, from, to string
		want           []string // the beginnings of what is found
	}{
		{"nothing", "", "", nil},
		{"a description", "Lists toys.", "Lists all toys.", nil},
		{"a code is new", "[invalid_parameter]", "[invalid_parameter, invalid_cursor]", nil},
		{"an error is new", `"400": {x-codes: [invalid_parameter]}`, `"400": {x-codes: [invalid_parameter]}` + "\n" + `        "409": {}`, nil},
		{"an optional parameter is new", "parameters: [", "parameters: [{name: size, in: query, schema: {type: string}}, ", nil},
		{"an optional field is new", "color: {type: string}", "color: {type: string}, size: {type: string}", nil},
		{"a field of a response is new", "properties: {id:", "properties: {size: {type: string}, id:", nil},
		{"a length is longer", "maxLength: 20", "maxLength: 30", nil},

		{"another version", "3.1.0", "3.0.0", []string{"openapi changed"}},
		{"another key", "[{key: []}]", "[{token: []}]", []string{"security changed"}},
		{"an operation is gone", "    post:\n      operationId: add", "    put:\n      operationId: add", []string{"POST /toys is gone"}},
		{"an operation has another name", "operationId: list", "operationId: toys", []string{"GET /toys: operationId changed"}},
		{"a parameter is gone", "name: color, in", "name: colour, in", []string{"GET /toys: query parameter color is gone"}},
		{"a parameter is required", "{name: color, in: query,", "{name: color, in: query, required: true,", []string{"GET /toys: query parameter color became required"}},
		{"a required parameter is new", "parameters: [", "parameters: [{name: size, in: query, required: true, schema: {type: string}}, ", []string{"GET /toys: query parameter size is new and required"}},
		{"a value of a request is gone", "[red, blue]", "[red]", []string{"GET /toys: query parameter color"}},
		{"a field of a request is required", "required: [name]", "required: [name, color]", []string{"POST /toys: request body"}},
		{"a length is shorter", "maxLength: 20", "maxLength: 10", []string{"POST /toys: request body"}},
		{"a body is required", "requestBody: {content", "requestBody: {required: true, content", []string{"POST /toys: request body became required"}},
		{"a success is new", `"201": {}`, `"201": {}` + "\n" + `        "202": {}`, []string{"POST /toys: status 202 is new"}},
		{"a response is gone", `"400": {x-codes: [invalid_parameter]}`, "", []string{"GET /toys: status 400 is gone"}},
		{"a code is gone", "[invalid_parameter]", "[]", []string{"GET /toys: 400: code invalid_parameter is gone"}},
		{"a header is gone", "headers: {Link: {required: true, schema: {type: string}}}", "headers: {}", []string{"GET /toys: 200: header Link is gone"}},
		{"a header is optional", "{required: true, schema: {type: string}}", "{schema: {type: string}}", []string{"GET /toys: 200: header Link became optional"}},
		{"a field of a response is optional", "required: [id, state]", "required: [id]", []string{"GET /toys: 200: application/json"}},
		{"a field of a response has another type", "id: {type: integer}", "id: {type: string}", []string{"GET /toys: 200: application/json"}},
		{"a value of a response is new", "[new, worn]", "[new, worn, lost]", []string{"GET /toys: 200: application/json"}},
		{"a schema has another name", "Toy", "Thing", []string{"schema Toy is gone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(smallDocument, test.from) {
				t.Fatalf("the document has no %q", test.from)
			}
			text := smallDocument
			if test.from != "" {
				text = strings.ReplaceAll(text, test.from, test.to)
			}
			new, err := tree([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got := breaking(old, new)
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
