package openapi

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/testenv"
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

// tolerated are changes that the comparison takes for breaking, with why they aren't.
var tolerated = map[string]string{
	"GET /events: 200: header Link became optional": "it is absent only after the oldest event of a list with before, which is new",
	"GET /events: 304: header Link became optional": "likewise",

	"POST /keys: request body: application/json: if is new":            "the service has always refused limits without the plan enterprise, and that plan without limits",
	"POST /keys: request body: application/json: then is new":          "likewise",
	"POST /keys: request body: application/json: else is new":          "likewise",
	"PATCH /keys/{keyId}: request body: application/json: if is new":   "likewise",
	"PATCH /keys/{keyId}: request body: application/json: then is new": "likewise",
}

// TestNothingBreaks checks that clients of the released document keep working.
func TestNothingBreaks(t *testing.T) {
	text, err := os.ReadFile(releasedFile)
	if err != nil {
		t.Fatal(err)
	}
	released, err := tree(text)
	if err != nil {
		t.Fatal(err)
	}
	wrong := slices.DeleteFunc(breaking(released, today()), func(w string) bool { return tolerated[w] != "" })
	for _, w := range wrong {
		t.Errorf("%s (compared with %s)", w, releasedFile)
	}
	if *release && len(wrong) == 0 {
		if err := os.WriteFile(releasedFile, YAML, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// change replaces the first occurrence of old with new.
type change struct {
	name     string
	old, new string
	want     string // part of a reported problem
}

func (c change) apply(t *testing.T) []string {
	t.Helper()
	if !bytes.Contains(YAML, []byte(c.old)) {
		t.Fatalf("the document has no %q to change", c.old)
	}
	changed, err := tree(bytes.Replace(YAML, []byte(c.old), []byte(c.new), 1))
	if err != nil {
		t.Fatal(err)
	}
	return breaking(today(), changed)
}

func TestBreakingChanges(t *testing.T) {
	testenv.Slow(t)
	const (
		status  = "enum: [available, pending, sold]"
		limit   = "        maximum: 100\n        default: 20\n"
		newPet  = "required: [name, categoryId]"
		pet     = "required: [id, name, categoryId, status]"
		etag    = "            ETag: {$ref: '#/components/headers/ETag'}\n"
		petCode = "x-codes: [pet_not_found]"
	)
	tests := []change{
		{"a path gone", "  /limits:\n", "  /limit:\n", "GET /limits is gone"},
		{"an operation gone", "    delete:\n      operationId: deletePet", "    trace:\n      operationId: deletePet", "DELETE /pets/{petId} is gone"},
		{"an operation renamed", "operationId: listPets", "operationId: getPets", "GET /pets: operationId changed"},
		{"another way to authenticate", "scheme: bearer", "scheme: basic", "securitySchemes changed"},
		{"another address", "{address}/v1", "{address}/v2", "servers changed"},

		{"a parameter gone", "- name: status\n          in: query", "- name: state\n          in: query", "query parameter status is gone"},
		{"a parameter required", "      name: limit\n      in: query\n", "      name: limit\n      in: query\n      required: true\n", "query parameter limit became required"},
		{"a new required parameter", "        - $ref: '#/components/parameters/IdempotencyKey'\n", "        - $ref: '#/components/parameters/IdempotencyKey'\n        - {name: shop, in: query, required: true, schema: {type: string}}\n", "query parameter shop is new and required"},
		{"a parameter in another format", "          explode: false\n", "          explode: true\n", "query parameter id: explode changed"},
		{"a smaller maximum limit", limit, "        maximum: 50\n        default: 20\n", "query parameter limit: maximum changed"},
		{"a larger minimum limit", "        minimum: 1\n" + limit, "        minimum: 2\n" + limit, "query parameter limit: minimum changed"},
		{"another default", limit, "        maximum: 100\n        default: 50\n", "default changed from 20 to 50"},
		{"a request header restricted", "      schema: {type: string}\n", "      schema: {type: string, maxLength: 20}\n", "header parameter If-Match: maxLength is new"},

		{"a value no longer accepted", status, "enum: [available, pending]", "POST /pets: request body: application/json.status: value sold is gone"},
		{"a field required", newPet, "required: [name, categoryId, status]", "request body: application/json: field status became required"},
		{"a field no longer read", "        categoryId: {$ref: '#/components/schemas/CategoryId'}\n        status:\n          $ref", "        status:\n          $ref", "field categoryId is gone"},
		{"a body required", "required: false\n        content", "required: true\n        content", "POST /keys/{keyId}/rotate: request body became required"},
		{"a media type gone", "x-also-accepts: [application/merge-patch+json]", "x-also-accepts: [application/patch+json]", "application/merge-patch+json is gone"},
		{"unknown fields refused", "description: A pet to add.\n      type: object\n", "description: A pet to add.\n      type: object\n      additionalProperties: false\n", "additionalProperties changed"},
		{"a shorter name", "maxLength: 1024\n      pattern", "maxLength: 100\n      pattern", "request body: application/json.name: maxLength changed"},
		{"another pattern", `pattern: '^[^\x00]*[^\s\x00][^\x00]*$'`, `pattern: '^[a-z]+$'`, "pattern changed"},
		{"null no longer accepted", "`null` for never.\n          type: [string, 'null']", "never.\n          type: string", "expiresAt: type null is gone"},
		{"fewer items accepted", "            maxItems: 100\n", "            maxItems: 10\n", "query parameter id: maxItems changed"},

		{"a status gone", "        '304': {$ref: '#/components/responses/ListNotModified'}\n", "", "GET /pets: status 304 is gone"},
		{"another success", "        '204':\n          description: The pet was removed.", "        '202':\n          description: The pet was removed.", "DELETE /pets/{petId}: status 202 is new"},
		{"a new body", "          description: The pet was removed. There is no body.\n", "          description: The pet was removed.\n          content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}\n", "a body is new"},
		{"a header gone", etag, "", "GET /pets: 200: header ETag is gone"},
		{"a header optional", "after every restart.\n      required: true\n", "after every restart.\n", "header ETag became optional"},
		{"a header with another value", "const: no-store", "const: private", "header Cache-Control: value private is new"},
		{"a body of another media type", "        application/json:\n          schema: {$ref: '#/components/schemas/Key'}", "        text/plain:\n          schema: {$ref: '#/components/schemas/Key'}", "application/json is gone"},
		{"a new value in a response", status, "enum: [available, pending, sold, lost]", "200: application/json[].status: value lost is new"},
		{"a field that became optional", pet, "required: [id, name, categoryId]", "field status became optional"},
		{"a field gone", "        refused:\n", "        rejected:\n", "[]: field refused is gone"},
		{"a field of another type", "description: One hour.\n      type: object", "description: One hour.\n      type: string", "type string is new"},
		{"a new null in a response", "    Time:\n      description: An instant in UTC, to the millisecond.\n      type: string", "    Time:\n      description: An instant in UTC, to the millisecond.\n      type: [string, 'null']", "type null is new"},
		{"a larger maximum in a response", "              maximum: 4\n", "              maximum: 5\n", "ban.level: maximum changed"},
		{"a longer list", "description: Pets, newest first.\n      type: array\n      maxItems: 100", "description: Pets, newest first.\n      type: array\n      maxItems: 1000", "maxItems changed"},
		{"a new field in a pet", pet + "\n      properties:\n", pet + "\n      properties:\n        age: {type: integer}\n", "field age is new in Pet"},
		{"a new field in an error", "required: [code, message, status]\n      properties:\n", "required: [code, message, status]\n      properties:\n        hint: {type: string}\n", "field hint is new in Error"},
		{"an error under another code", petCode, "x-codes: [route_not_found]", "404: code pet_not_found is gone"},
		{"an unknown keyword", "    KeyLimits:\n", "    KeyLimits:\n      not: {maxProperties: 1}\n", "not is new"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(test.apply(t), "\n")
			if got == "" || !strings.Contains(got, test.want) {
				t.Errorf("got %q\nwant %q in it", got, test.want)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	tests := []change{
		{name: "nothing"},
		{name: "a new operation", old: "paths:\n", new: "paths:\n  /visits:\n    get: {operationId: listVisits, responses: {'200': {description: Visits.}}}\n"},
		{name: "a new method", old: "    delete:\n      operationId: revokeKey", new: "    put: {operationId: putKey, responses: {}}\n    delete:\n      operationId: revokeKey"},
		{name: "a new optional parameter", old: "        - $ref: '#/components/parameters/Limit'\n", new: "        - $ref: '#/components/parameters/Limit'\n        - {name: sort, in: query, schema: {type: string}}\n"},
		{name: "a new optional field in a request", old: "        name: {$ref: '#/components/schemas/Name'}\n", new: "        name: {$ref: '#/components/schemas/Name'}\n        nick: {type: string}\n"},
		{name: "a new field in a response", old: "        revokedAt:\n", new: "        owner: {type: string}\n        revokedAt:\n"},
		{name: "a new header in a response", old: "        WWW-Authenticate: {$ref", new: "        X-Hint: {schema: {type: string}}\n        WWW-Authenticate: {$ref"},
		{name: "an error with a new status", old: "        '413': {$ref", new: "        '402': {$ref: '#/components/responses/Forbidden'}\n        '413': {$ref"},
		{name: "a new error code", old: "x-codes: [missing_api_key, invalid_api_key]", new: "x-codes: [missing_api_key, invalid_api_key, expired_api_key]"},
		{name: "a second code", old: "x-codes: [key_not_found]", new: "x-codes: [key_not_found, key_gone]"},
		{name: "a larger maximum limit", old: "        maximum: 100\n        default: 20\n", new: "        maximum: 200\n        default: 20\n"},
		{name: "a new media type", old: "x-also-accepts: [application/merge-patch+json]", new: "x-also-accepts: [application/merge-patch+json, application/cbor]"},
		{name: "a narrower response", old: "              maximum: 4\n", new: "              maximum: 3\n"},
		{name: "a reworded description", old: "description: The pets in the store.", new: "description: All creatures."},
		{name: "a deprecation", old: "operationId: getLimits", new: "operationId: getLimits\n      deprecated: true"},
		{name: "a component moved", old: "schema: {$ref: '#/components/schemas/PageLinks'}", new: "schema: {type: string, pattern: '^</v1/[^>]+>; rel=\"first\"(, </v1/[^>]+>; rel=\"next\")?$'}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.apply(t); len(got) > 0 {
				t.Errorf("got %q, want growth to pass", got)
			}
		})
	}
}
