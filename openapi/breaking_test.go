package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/oasdiff/yaml3"
)

// breaking returns the ways in which the new document breaks a client of the old
// one, one sentence each. Operations are compared here, schemas in
// schemas_test.go. Keywords it doesn't know count as breaking.
func breaking(old, new object) []string {
	b := breakage{old: old, new: new}
	b.document()
	slices.Sort(b.wrong)
	return slices.Compact(b.wrong)
}

type object = map[string]any

// tree parses the document into plain values, independent of any library's types.
func tree(text []byte) (root object, err error) {
	err = yaml.Unmarshal(text, &root)
	return root, err
}

type breakage struct {
	old, new object
	wrong    []string
}

func (b *breakage) add(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

func (b *breakage) document() {
	for _, key := range []string{"openapi", "security", "servers"} {
		if !reflect.DeepEqual(withoutAnnotations(b.old[key]), withoutAnnotations(b.new[key])) {
			b.add("%s changed", key)
		}
	}
	if !reflect.DeepEqual(withoutAnnotations(at(b.old, "components", "securitySchemes")), withoutAnnotations(at(b.new, "components", "securitySchemes"))) {
		b.add("securitySchemes changed")
	}
	newSchemas := at(b.new, "components", "schemas")
	for name := range at(b.old, "components", "schemas") {
		if newSchemas[name] == nil {
			b.add("schema %s is gone, after which generated clients name a type", name)
		}
	}
	oldPaths, newPaths := at(b.old, "paths"), at(b.new, "paths")
	for path := range oldPaths {
		for method := range at(oldPaths, path) {
			oldOp := at(oldPaths, path, method)
			if oldOp["responses"] == nil {
				b.add("%s: %s is unexpected here", path, method)
				continue
			}
			where := strings.ToUpper(method) + " " + path
			if newOp := at(newPaths, path, method); newOp != nil {
				b.operation(where, oldOp, newOp)
			} else {
				b.add("%s is gone", where)
			}
		}
	}
}

func (b *breakage) operation(where string, old, new object) {
	for _, key := range []string{"operationId", "security", "servers"} {
		if !reflect.DeepEqual(withoutAnnotations(old[key]), withoutAnnotations(new[key])) {
			b.add("%s: %s changed", where, key)
		}
	}
	b.parameters(where, old, new)
	b.requestBody(where, b.follow(b.old, old["requestBody"]), b.follow(b.new, new["requestBody"]))
	oldResponses, newResponses := at(old, "responses"), at(new, "responses")
	for status := range oldResponses {
		if newResponses[status] == nil {
			b.add("%s: status %s is gone", where, status)
			continue
		}
		p, q := b.follow(b.old, oldResponses[status]), b.follow(b.new, newResponses[status])
		b.response(where+": "+status, p, q)
		for _, code := range without(list(p["x-codes"]), list(q["x-codes"])) {
			b.add("%s: %s: code %v is gone", where, status, code)
		}
	}
	for status := range newResponses {
		// Clients must handle errors they don't know, but not new kinds of
		// success. Only clients that ask for a 304 get one.
		if oldResponses[status] == nil && status < "400" && status != "304" {
			b.add("%s: status %s is new", where, status)
		}
	}
}

func (b *breakage) parameters(where string, old, new object) {
	oldParams, newParams := b.byName(b.old, old), b.byName(b.new, new)
	for name, p := range oldParams {
		q := newParams[name]
		if q == nil {
			b.add("%s: %s is gone", where, name)
			continue
		}
		if p["required"] != true && q["required"] == true {
			b.add("%s: %s became required", where, name)
		}
		for _, key := range []string{"style", "explode", "allowReserved", "content"} {
			if !reflect.DeepEqual(withoutAnnotations(p[key]), withoutAnnotations(q[key])) {
				b.add("%s: %s: %s changed", where, name, key)
			}
		}
		b.schema(request, where+": "+name, p["schema"], q["schema"])
	}
	for name, q := range newParams {
		if oldParams[name] == nil && q["required"] == true {
			b.add("%s: %s is new and required", where, name)
		}
	}
}

func (b *breakage) byName(root, op object) map[string]object {
	all := map[string]object{}
	list, _ := op["parameters"].([]any)
	for _, item := range list {
		p := b.follow(root, item)
		all[fmt.Sprintf("%s parameter %s", p["in"], p["name"])] = p
	}
	return all
}

func (b *breakage) requestBody(where string, old, new object) {
	where += ": request body"
	switch {
	case new["required"] == true && old["required"] != true:
		b.add("%s became required", where)
	case old != nil && new == nil:
		b.add("%s is gone", where)
	}
	b.content(request, where, old, new)
}

func (b *breakage) response(where string, old, new object) {
	oldHeaders, newHeaders := at(old, "headers"), at(new, "headers")
	for name := range oldHeaders {
		p, q := b.follow(b.old, oldHeaders[name]), b.follow(b.new, newHeaders[name])
		header := where + ": header " + name
		switch {
		case q == nil:
			b.add("%s is gone", header)
			continue
		case p["required"] == true && q["required"] != true:
			b.add("%s became optional", header)
		}
		b.schema(response, header, p["schema"], q["schema"])
	}
	b.content(response, where, old, new)
}

func (b *breakage) content(dir direction, where string, old, new object) {
	oldContent, newContent := at(old, "content"), at(new, "content")
	for _, kind := range without(kinds(old), kinds(new)) {
		b.add("%s: %s is gone", where, kind)
	}
	for kind := range oldContent {
		if newContent[kind] != nil {
			b.schema(dir, where+": "+kind, at(oldContent, kind)["schema"], at(newContent, kind)["schema"])
		}
	}
	if dir == response && len(oldContent) == 0 && len(newContent) > 0 {
		b.add("%s: a body is new", where)
	}
}

// kinds returns the media types that a body may have.
func kinds(body object) []any {
	all := slices.Clone(list(body["x-also-accepts"]))
	for kind := range at(body, "content") {
		all = append(all, kind)
	}
	return all
}

// follow resolves a value of the document. Fields next to a $ref override those
// of its target. The result is nil if there is no value.
func (b *breakage) follow(root object, value any) object {
	o, _ := value.(object)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	target := root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		target = at(target, step)
	}
	if target == nil {
		b.add("%s has no target", ref)
		return nil
	}
	merged := object{}
	maps.Copy(merged, b.follow(root, target))
	for key, v := range o {
		if key != "$ref" {
			merged[key] = v
		}
	}
	// Some rules apply to a schema by name.
	merged["x-name"] = cmp.Or(merged["x-name"], any(ref[strings.LastIndexByte(ref, '/')+1:]))
	return merged
}

// at is the object at the end of these keys, or nil.
func at(o object, keys ...string) object {
	for _, key := range keys {
		o, _ = o[key].(object)
	}
	return o
}

// annotations are keywords for people, without effect on clients.
var annotations = []string{"description", "summary", "title", "example", "examples", "deprecated", "externalDocs", "$comment"}

// withoutAnnotations is a value without annotations and extensions.
func withoutAnnotations(value any) any {
	switch v := value.(type) {
	case object:
		out := object{}
		for key, inner := range v {
			if !slices.Contains(annotations, key) && !strings.HasPrefix(key, "x-") {
				out[key] = withoutAnnotations(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutAnnotations(v[i])
		}
		return out
	}
	return value
}
