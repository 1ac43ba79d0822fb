package openapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// A check returns the problems it finds in a document, one sentence each.
type check struct {
	name string
	find func(*openapi3.T) []string
}

var checks = []check{
	{"is valid OpenAPI 3.1", findInvalid},
	{"examples fit their schemas", findBadExamples},
	{"everything is described and has an example", findUndocumented},
	{"one operation is deprecated, all need the key", findOddOperations},
	{"every response has its headers", findMissingHeaders},
	{"bodies are only where expected", findMisplacedBodies},
	{"condition headers match their statuses", findLooseConditions},
	{"error codes are listed", findStrayErrors},
	{"servers end with /v1", findBadServers},
}

func findInvalid(doc *openapi3.T) (wrong []string) {
	if doc.OpenAPI != "3.1.0" {
		wrong = append(wrong, fmt.Sprintf("openapi: got %s, want 3.1.0", doc.OpenAPI))
	}
	if err := doc.Validate(context.Background()); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// findBadExamples validates every example, because kin-openapi skips those of
// headers and those under a schema's examples. Most examples are shared between
// operations and compiling a schema is slow, so each one is tried once.
func findBadExamples(doc *openapi3.T) (wrong []string) {
	type trial struct {
		schema *openapi3.Schema
		value  string
	}
	tried := map[trial]error{}
	try := func(where string, value any, schema *openapi3.SchemaRef) {
		this := trial{schema.Value, fmt.Sprint(value)}
		err, known := tried[this]
		if !known {
			err = schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
			tried[this] = err
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: example %v: %v", where, value, err))
		}
	}
	closed := false // examples have no other fields, though the service may add some
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if s := doc.Components.Schemas[name].Value; s.Type.Is("object") {
			s.AdditionalProperties.Has = &closed
		}
	}
	for where, d := range documented(doc) {
		for _, value := range d.examples {
			try(where, value, d.schema)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		err := doc.Components.Schemas[name].WalkSubtree(func(path string, s *openapi3.SchemaRef) error {
			for _, value := range s.Value.Examples {
				try("schema "+name+path, value, s)
			}
			return nil
		})
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

func findUndocumented(doc *openapi3.T) (wrong []string) {
	for where, d := range documented(doc) {
		if d.description == "" {
			wrong = append(wrong, where+": got no description, want one")
		}
		has, want := len(d.examples) > 0, d.schema != nil && d.schema.Value.Format != "binary" && !needsCaller(where)
		if has != want {
			wrong = append(wrong, where+": got "+quantity(has)+" example, want "+quantity(want))
		}
	}
	for name, op := range operations(doc) {
		if op.OperationID == "" {
			wrong = append(wrong, name+": got no operationId, want one")
		}
		if op.Summary == "" {
			wrong = append(wrong, name+": got no summary, want one")
		}
		if op.Description == "" {
			wrong = append(wrong, name+": got no description, want one")
		}
		if len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
			wrong = append(wrong, fmt.Sprintf("%s: got tags %v, want one that the document declares", name, op.Tags))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if doc.Components.Schemas[name].Value.Description == "" {
			wrong = append(wrong, "schema "+name+": got no description, want one")
		}
	}
	return wrong
}

// needsCaller reports whether a parameter only works with a value that the caller
// got from a response or chose for this request. Programs such as the docs page send
// examples, so it must not have one.
func needsCaller(where string) bool {
	return strings.HasSuffix(where, " parameter cursor") || strings.HasSuffix(where, " parameter If-Match") ||
		strings.HasSuffix(where, " parameter Idempotency-Key") || strings.HasSuffix(where, " parameter Last-Event-ID") ||
		strings.HasPrefix(where, "PUT ") && strings.HasSuffix(where, " parameter If-None-Match")
}

func quantity(some bool) string {
	if some {
		return "an"
	}
	return "no"
}

func findOddOperations(doc *openapi3.T) (wrong []string) {
	for name, op := range operations(doc) {
		if op.Responses.Default() != nil {
			wrong = append(wrong, name+": got a default response, want none")
		}
		if op.Deprecated != (op.OperationID == "getPet") {
			wrong = append(wrong, fmt.Sprintf("%s: got deprecated %t, want %t", name, op.Deprecated, !op.Deprecated))
		}
		if op.Security != nil {
			wrong = append(wrong, fmt.Sprintf("%s: got its own security %v, want the document's", name, *op.Security))
		}
	}
	if len(doc.Security) != 1 || len(doc.Security[0]) != 1 {
		wrong = append(wrong, fmt.Sprintf("security: got %v, want only the bearer key", doc.Security))
	}
	return wrong
}

func findBadServers(doc *openapi3.T) (wrong []string) {
	if len(doc.Servers) != 2 {
		wrong = append(wrong, fmt.Sprintf("got %d servers, want production and staging", len(doc.Servers)))
	}
	for _, server := range doc.Servers {
		if !strings.HasSuffix(server.URL, "/v1") {
			wrong = append(wrong, fmt.Sprintf("%s: got %s, want a URL that ends in /v1", server.Description, server.URL))
		}
	}
	return wrong
}
