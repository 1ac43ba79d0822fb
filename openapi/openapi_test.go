package openapi

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"animalstore/internal/testenv"
)

func TestDocument(t *testing.T) {
	for name, text := range map[string][]byte{"yaml": YAML, "json": JSON} {
		doc, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			t.Run(name+"/"+check.name, func(t *testing.T) {
				for _, wrong := range check.find(doc) {
					t.Error(wrong)
				}
			})
		}
	}
}

// TestChecks breaks the document in one place at a time and expects the matching
// check to report it.
func TestChecks(t *testing.T) {
	testenv.Slow(t)
	tests := []struct {
		name     string
		old, new string // the first occurrence of old is replaced with new
		check    string
		want     string // part of a reported problem
	}{
		{"another OpenAPI version", "openapi: 3.1.0", "openapi: 3.0.3", "is valid OpenAPI 3.1", "want 3.1.0"},
		{"an unknown keyword", "tags: [pets]", "tag: [pets]", "is valid OpenAPI 3.1", "extra sibling fields: [tag]"},
		{"a body example with a wrong type", "{id: 42, name: Rex", "{id: x, name: Rex", "examples fit their schemas", "must be an integer"},
		{"a body example with an extra field", "{id: 42, name: Rex", "{age: 3, id: 42, name: Rex", "examples fit their schemas", "age"},
		{"an error example with a wrong code", "code: payload_too_large\n", "code: pet_not_found\n", "error codes are listed", "POST /pets: 413: example with code pet_not_found"},
		{"an error example with a wrong status", "status: 413\n", "status: 414\n", "error codes are listed", "POST /pets: 413: example with status 414"},
		{"a parameter example out of range", "example: 50", "example: 500", "examples fit their schemas", "parameter limit"},
		{"a header example that does not match", "example: /v1/pets/42", "example: /pets/42", "examples fit their schemas", "header Location"},
		{"a schema example that does not match", "examples: [Rex]", "examples: ['']", "examples fit their schemas", "schema Name"},
		{"no operationId", "operationId: listPets", "x-id: listPets", "everything is described and has an example", "GET /pets: got no operationId"},
		{"no summary", "summary: List pets", "x-summary: none", "everything is described and has an example", "GET /pets: got no summary"},
		{"an undeclared tag", "tags: [pets]", "tags: [cats]", "everything is described and has an example", "got tags [cats]"},
		{"a parameter without a description", "description: Only pets with", "x-note: Only pets with", "everything is described and has an example", "parameter status: got no description"},
		{"a parameter without an example", "          example: available\n", "", "everything is described and has an example", "parameter status: got no example"},
		{"a header without a description", "description: The path of the new", "x-note: The path of the new", "everything is described and has an example", "header Location: got no description"},
		{"a header without an example", "              example: /v1/pets/42\n", "", "everything is described and has an example", "header Location: got no example"},
		{"a response without a description", "description: The body is larger than 1 MiB.", "description: ''", "everything is described and has an example", "413 body: got no description"},
		{"a response without an example", "          examples:\n            tooLarge", "          x-examples:\n            tooLarge", "everything is described and has an example", "413 body: got no example"},
		{"a default response", "        '201':\n", "        default: {description: Anything.}\n        '201':\n", "operations are the expected ones", "POST /pets: got a default response"},
		{"an unexpected status", "        '413':", "        '418':", "operations are the expected ones", "418"},
		{"a missing deprecation", "deprecated: true", "deprecated: false", "operations are the expected ones", "want true"},
		{"an operation without a key", "operationId: createPet", "operationId: createPet\n      security: []", "operations are the expected ones", "its own security"},
		{"a response without a request id", "            X-Request-Id: {$ref: '#/components/headers/RequestId'}\n", "", "every response has its headers", "no required X-Request-Id"},
		{"an optional request id", "report a problem.\n      required: true\n", "report a problem.\n", "every response has its headers", "no required X-Request-Id"},
		{"a list without a tag", "            ETag: {$ref: '#/components/headers/ETag'}\n", "", "every response has its headers", "GET /pets: 200: got no required ETag"},
		{"a 304 without a tag", "changed since you received this ETag. There is no body.\n          headers:", "changed since you received this ETag. There is no body.\n          headers: {}\n          x-headers:", "every response has its headers", "GET /pets/{petId}: 304: got no required ETag"},
		{"a page without links", "            Link: {$ref: '#/components/headers/PageLinks'}\n", "", "every response has its headers", "GET /pets: 200: got no required Link"},
		{"a missing Location", "            Location:\n", "            X-Location:\n", "every response has its headers", "POST /pets: 201: got no required Location"},
		{"a cacheable secret", "/v1/keys/2\n            Cache-Control: {$ref: '#/components/headers/NoStore'}\n", "/v1/keys/2\n", "every response has its headers", "POST /keys: 201: got no required Cache-Control"},
		{"a missing replay header", "            Idempotent-Replayed: {$ref: '#/components/headers/Replayed'}\n", "", "every response has its headers", "Idempotent-Replayed"},
		{"a missing deprecation header", "            Deprecation: {$ref: '#/components/headers/Deprecation'}\n", "", "every response has its headers", "got no required Deprecation"},
		{"an optional challenge", "only if a token was sent.\n      required: true\n", "only if a token was sent.\n", "every response has its headers", "got no required WWW-Authenticate"},
		{"an optional Retry-After", "before the next attempt.\n      required: true\n", "before the next attempt.\n", "every response has its headers", "got no required Retry-After"},
		{"a body on 304", "    ListNotModified:\n", "    ListNotModified:\n      content: {application/json: {schema: {$ref: '#/components/schemas/Pets'}}}\n", "bodies are only where expected", "GET /pets: 304"},
		{"an error that isn't JSON", "x-codes: [payload_too_large]\n      content:\n        application/json:", "x-codes: [payload_too_large]\n      content:\n        text/plain:", "bodies are only where expected", "POST /pets: 413: got 1 media types"},
		{"a secret in a list", "        revokedAt:\n          type", "        secret: {type: string}\n        revokedAt:\n          type", "bodies are only where expected", "GET /keys/{keyId}: 200: got a secret"},
		{"a patch without its merge-patch type", "x-also-accepts: [application/merge-patch+json]", "x-also-accepts: [application/patch+json]", "bodies are only where expected", "PATCH /pets/{petId}"},
		{"a missing condition header", "        - $ref: '#/components/parameters/IfMatch'\n", "", "condition headers match their statuses", "GET /pets: header If-Match: got false"},
		{"a condition header without a status", "        - $ref: '#/components/parameters/IdempotencyKey'\n", "        - $ref: '#/components/parameters/IdempotencyKey'\n        - $ref: '#/components/parameters/IfNoneMatch'\n", "condition headers match their statuses", "POST /pets: header If-None-Match: got true"},
		{"a PUT that can't be limited to creating", "        - $ref: '#/components/parameters/IfNoneMatchOnPut'\n", "", "condition headers match their statuses", "PUT /categories/{categoryId}: header If-None-Match: got false"},
		{"a 415 to PATCH that doesn't say what is accepted", "        Accept-Patch: {$ref: '#/components/headers/AcceptPatch'}\n", "", "every response has its headers", "PATCH /pets/{petId}: 415: got no required Accept-Patch"},
		{"another permission", "Needs the `write` permission", "Needs the `read` permission", "operations are the expected ones", "createPet: POST /pets: read"},
		{"a missing permission", "Needs the `read` permission", "Needs a permission", "operations are the expected ones", "no permission named"},
		{"a cursor that no list accepts", "      name: cursor\n", "      name: cursor\n      example: L3YxL3BldHN8NDF8\n", "everything is described and has an example", "parameter cursor: got an example"},
		{"another error body", "schema: {$ref: '#/components/schemas/Error'}", "schema: {$ref: '#/components/schemas/Pet'}", "error codes are listed", "want Error"},
		{"a code with the wrong status", "| `payload_too_large` | 413 |", "| `payload_too_large` | 400 |", "error codes are listed", "code payload_too_large: got no line for status 413"},
		{"a code without a response", "x-codes: [missing_api_key, invalid_api_key]", "x-codes: [missing_api_key]", "error codes are listed", "code invalid_api_key"},
		{"an error without codes", "      x-codes: [payload_too_large]\n", "", "error codes are listed", "413: got no x-codes"},
		{"an unlisted code", "        - overloaded\n", "", "error codes are listed", "code overloaded: not in ErrorCode"},
		{"a server without a version", "{address}/v1", "{address}/v2", "servers end with /v1", "{address}/v2"},
		{"an unused component", "  schemas:\n", "  schemas:\n    Dog: {description: Barks.}\n", "components are used", "schemas Dog"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if !bytes.Contains(YAML, []byte(test.old)) {
				t.Fatalf("the document has no %q to break", test.old)
			}
			doc, err := parse(bytes.Replace(YAML, []byte(test.old), []byte(test.new), 1))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == test.check })
			got := strings.Join(checks[i].find(doc), "\n")
			if got == "" || !strings.Contains(got, test.want) {
				t.Errorf("check %q\n got %q\nwant %q in it", test.check, got, test.want)
			}
		})
	}
}

// operations yields each operation under its method and path.
func operations(doc document) iter.Seq2[string, *openapi3.Operation] {
	return func(yield func(string, *openapi3.Operation) bool) {
		for _, path := range doc.Paths.InMatchingOrder() {
			methods := doc.Paths.Value(path).Operations()
			for _, method := range slices.Sorted(maps.Keys(methods)) {
				if !yield(method+" "+path, methods[method]) {
					return
				}
			}
		}
	}
}

// documentation describes one value on the wire. A response without a body has
// no schema.
type documentation struct {
	description string
	schema      *openapi3.SchemaRef
	examples    []any
}

// documented yields every parameter, header and body of every operation.
func documented(doc document) iter.Seq2[string, documentation] {
	all := map[string]documentation{}
	body := func(where, description string, content openapi3.Content) {
		all[where] = documentation{description: description}
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			kindWhere := where
			if kind != "application/json" {
				kindWhere += " as " + kind
			}
			media := content[kind]
			all[kindWhere] = documentation{description, media.Schema, values(media.Example, media.Examples)}
		}
	}
	for name, op := range operations(doc) {
		for _, p := range op.Parameters {
			all[name+" parameter "+p.Value.Name] = documentation{p.Value.Description, p.Value.Schema, values(p.Value.Example, p.Value.Examples)}
		}
		if op.RequestBody != nil {
			body(name+" request", op.RequestBody.Value.Description, op.RequestBody.Value.Content)
		}
		for status, response := range op.Responses.Map() {
			where := fmt.Sprintf("%s %s", name, status)
			body(where+" body", *response.Value.Description, response.Value.Content)
			for header, h := range response.Value.Headers {
				all[where+" header "+header] = documentation{h.Value.Description, h.Value.Schema, values(h.Value.Example, h.Value.Examples)}
			}
		}
	}
	return func(yield func(string, documentation) bool) {
		for _, where := range slices.Sorted(maps.Keys(all)) {
			if !yield(where, all[where]) {
				return
			}
		}
	}
}

func values(one any, many openapi3.Examples) (all []any) {
	if one != nil {
		all = append(all, one)
	}
	for _, name := range slices.Sorted(maps.Keys(many)) {
		all = append(all, many[name].Value.Value)
	}
	return all
}
