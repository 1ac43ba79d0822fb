package openapi

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(YAML)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			for _, wrong := range check.find(doc) {
				t.Error(wrong)
			}
		})
	}
}

// operations yields each operation under its method and path.
func operations(doc *openapi3.T) iter.Seq2[string, *openapi3.Operation] {
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
func documented(doc *openapi3.T) iter.Seq2[string, documentation] {
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
