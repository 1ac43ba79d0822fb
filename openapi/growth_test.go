package openapi

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestDocumentCanGrow: generated clients accept fields and codes that are added later. An
// object that can be null is a reference with anyOf: before 7.25, openapi-generator forgets
// that a schema in the field itself allows null. make interop runs the generators.
func TestDocumentCanGrow(t *testing.T) {
	for path, value := range objects("", today()) {
		if value["additionalProperties"] != nil {
			t.Errorf("%s: got additionalProperties, want an object that may gain fields", path)
		}
		if types, _ := value["type"].([]any); slices.Contains(types, any("object")) && slices.Contains(types, any("null")) {
			t.Errorf("%s: got an object that can be null, want anyOf of a reference and null", path)
		}
	}
	codes := at(today(), "components", "schemas", "ErrorCode")
	if codes["enum"] != nil || codes["const"] != nil || codes["x-extensible-enum"] == nil {
		t.Error("got a closed list of codes, want x-extensible-enum")
	}
}

// objects yields every object of the document under its path, except examples.
func objects(path string, value any) iter.Seq2[string, object] {
	return func(yield func(string, object) bool) {
		switch v := value.(type) {
		case object:
			if !yield(path, v) {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if key == "example" || key == "examples" {
					continue
				}
				for p, o := range objects(strings.TrimPrefix(path+"/"+key, "/"), v[key]) {
					if !yield(p, o) {
						return
					}
				}
			}
		case []any:
			for i, item := range v {
				for p, o := range objects(fmt.Sprintf("%s/%d", path, i), item) {
					if !yield(p, o) {
						return
					}
				}
			}
		}
	}
}
