package openapi

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// generatorRules are what code generators need beyond a valid document. Each rule
// names a generator that failed without it; make interop runs them all.
var generatorRules = []struct {
	name string
	find func(path string, value object) string // "" or what is wrong
}{
	{"nothing but a description beside $ref", findRefSibling},
	{"times have no pattern", findTimePattern},
	{"fields have no default", findDefault},
	{"schemas aren't combined", findCombination},
	{"a body has one media type", findManyMediaTypes},
	{"large integers are int64", findNarrowInteger},
	{"objects are open", findClosedObject},
	{"error codes are open", findClosedCode},
	{"schemas have the names of the interface", findMissingName},
	{"schemas below webhooks are used elsewhere", findWebhookSchema},
	{"null is allowed in the field itself", findNullableComponent},
	{"lists in requests are described", findListReference},
}

// openapi-generator writes a default beside a reference as Java that doesn't compile.
func findRefSibling(_ string, v object) string {
	for key := range v {
		if v["$ref"] != nil && key != "$ref" && key != "description" {
			return key + " beside $ref"
		}
	}
	return ""
}

// openapi-generator for Python applies the pattern to the parsed time and raises.
func findTimePattern(_ string, v object) string {
	if v["format"] == "date-time" && v["pattern"] != nil {
		return "pattern beside format date-time"
	}
	return ""
}

// openapi-typescript makes a field with a default required, in requests too.
func findDefault(path string, v object) string {
	if v["default"] != nil && strings.HasPrefix(path, "components/schemas/") {
		return "default in a body"
	}
	return ""
}

// openapi-python-client drops a response whose schema narrows another with allOf, and
// openapi-generator leaves its fields without a type.
func findCombination(_ string, v object) string {
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not"} {
		if v[key] != nil {
			return "got " + key + ", want the schema written out"
		}
	}
	return ""
}

// openapi-python-client takes a body with two media types for an optional one.
func findManyMediaTypes(_ string, v object) string {
	if content := at(v, "content"); len(content) > 1 {
		return fmt.Sprintf("got %d media types, want one", len(content))
	}
	return ""
}

// openapi-generator uses 32 bits in Java and Go for an integer without a format.
func findNarrowInteger(_ string, v object) string {
	maximum, bounded := v["maximum"].(int)
	if v["type"] == "integer" && v["format"] != "int64" && (!bounded || maximum > 1<<31-1) {
		return "an integer that may need 64 bits, without format int64"
	}
	return ""
}

// openapi-generator for Go and Python refuses fields that a closed object doesn't have,
// so a field that we add would break its clients.
func findClosedObject(_ string, v object) string {
	if v["additionalProperties"] != nil {
		return "got additionalProperties, want an object that may gain fields"
	}
	return ""
}

// Every typed generator refuses a value outside an enum, and codes may be added.
func findClosedCode(path string, v object) string {
	if path == "components/schemas/ErrorCode" && (v["enum"] != nil || v["const"] != nil || v["x-extensible-enum"] == nil) {
		return "got a closed list of codes, want x-extensible-enum"
	}
	return ""
}

// interfaceNames are the schemas that the interface names, and the other inputs named
// alike. openapi-generator for Go and Java need care with some of them, which
// docs/callers.md describes.
var interfaceNames = []string{"NewPet", "Pet", "Pets", "PetStatus", "Error", "NewOrder", "NewCategory", "NewKey", "NewWebhook"}

func findMissingName(path string, v object) string {
	if path != "components/schemas" {
		return ""
	}
	for _, name := range interfaceNames {
		if v[name] == nil {
			return "got no schema " + name
		}
	}
	return ""
}

// oapi-codegen leaves out a named schema that no path uses, but not the operations below
// webhooks that use it.
func findWebhookSchema(path string, v object) string {
	if path != "" {
		return ""
	}
	used := references(v, at(v, "paths"))
	for ref := range references(v, at(v, "webhooks")) {
		if !used[ref] {
			return "got " + ref + " below webhooks only, want it written out there"
		}
	}
	return ""
}

// references returns what a part of the document refers to, directly or not.
func references(root, part object) map[string]bool {
	all := map[string]bool{}
	var add func(part object)
	add = func(part object) {
		for _, o := range objects("", part) {
			if ref, ok := o["$ref"].(string); ok && !all[ref] {
				all[ref] = true
				add(at(root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
			}
		}
	}
	add(part)
	return all
}

// oapi-codegen forgets that a schema allows null when a field refers to it.
func findNullableComponent(path string, v object) string {
	if strings.Count(path, "/") == 2 && strings.HasPrefix(path, "components/schemas/") && slices.Contains(list(v["type"]), "null") {
		return "got a named schema that allows null, want that in the field"
	}
	return ""
}

var requestField = regexp.MustCompile(`^components/schemas/(New\w+|\w+Patch)/properties/`)

// openapi-generator for Java sends an empty list for an optional field that is only a
// reference to one. With a description beside the reference it leaves the field out.
func findListReference(path string, v object) string {
	if requestField.MatchString(path) && v["$ref"] == "#/components/schemas/Permissions" && v["description"] == nil {
		return "got a list without a description"
	}
	return ""
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

func TestGeneratorsUnderstandTheDocument(t *testing.T) {
	for _, rule := range generatorRules {
		t.Run(rule.name, func(t *testing.T) {
			for path, value := range objects("", today()) {
				if wrong := rule.find(path, value); wrong != "" {
					t.Errorf("%s: %s", path, wrong)
				}
			}
		})
	}
}
