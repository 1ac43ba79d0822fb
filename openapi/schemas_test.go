package openapi

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// direction says who sends the value a schema describes, and therefore how the
// schema may change. The server may accept more from clients, never less. It may
// send them less, never more.
type direction string

const (
	request  direction = "request"
	response direction = "response"
)

// errorBody is where an error is.
var errorBody = regexp.MustCompile(`: [45][0-9]{2}: application/json$`)

// exact reports whether a body must not gain fields: those of pets and errors.
func exact(where string, schema object) bool {
	return schema["x-name"] == "Pet" || errorBody.MatchString(where)
}

// schema compares two schemas of the same value.
func (b *breakage) schema(dir direction, where string, oldValue, newValue any) {
	old, new := b.follow(b.old, oldValue), b.follow(b.new, newValue)
	keys := maps.Clone(old)
	maps.Copy(keys, new)
	for key := range keys {
		if slices.Contains(annotations, key) || strings.HasPrefix(key, "x-") {
			continue
		}
		b.keyword(dir, where, key, old, new)
	}
}

func (b *breakage) keyword(dir direction, where, key string, old, new object) {
	p, hadIt := old[key]
	q, hasIt := new[key]
	switch key {
	case "properties":
		b.properties(dir, where, old, new)
	case "required":
		b.required(dir, where, list(p), list(q))
	case "type":
		b.choice(dir, where, "type", list(p), list(q))
	case "enum", "const":
		b.choice(dir, where, "value", allowed(old), allowed(new))
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		b.bound(dir, where, key, hadIt, hasIt, number(p), number(q))
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		b.bound(dir, where, key, hadIt, hasIt, -number(p), -number(q))
	case "default":
		if dir == request && hadIt && !reflect.DeepEqual(p, q) {
			b.add("%s: default changed from %v to %v", where, p, q)
		}
	case "items":
		if b.narrowing(dir, where, key, hadIt, hasIt) {
			b.schema(dir, where+"[]", p, q)
		}
	default:
		b.other(dir, where, key, old, new)
	}
}

// other compares format, pattern, multipleOf and keywords not used yet: we can't
// tell which of two values is narrower.
func (b *breakage) other(dir direction, where, key string, old, new object) {
	p, hadIt := old[key]
	q, hasIt := new[key]
	if b.narrowing(dir, where, key, hadIt, hasIt) && !reflect.DeepEqual(withoutAnnotations(p), withoutAnnotations(q)) {
		b.add("%s: %s changed from %v to %v", where, key, p, q)
	}
}

// narrowing checks a keyword that only one side has, and reports whether both
// have it.
func (b *breakage) narrowing(dir direction, where, key string, hadIt, hasIt bool) bool {
	switch {
	case dir == request && !hadIt:
		b.add("%s: %s is new", where, key)
	case dir == response && !hasIt:
		b.add("%s: %s is gone", where, key)
	}
	return hadIt && hasIt
}

func (b *breakage) properties(dir direction, where string, old, new object) {
	p, q := at(old, "properties"), at(new, "properties")
	for name := range p {
		if q[name] == nil {
			b.add("%s: field %s is gone", where, name)
			continue
		}
		b.schema(dir, where+"."+name, p[name], q[name])
	}
	for name := range q {
		if p[name] == nil && dir == response && exact(where, old) {
			b.add("%s: field %s is new in %v, which must not gain fields", where, name, old["x-name"])
		}
	}
}

func (b *breakage) required(dir direction, where string, old, new []any) {
	if dir == request {
		for _, name := range without(new, old) {
			b.add("%s: field %v became required", where, name)
		}
		return
	}
	for _, name := range without(old, new) {
		b.add("%s: field %v became optional", where, name)
	}
}

// choice compares the allowed values; an empty list allows anything.
func (b *breakage) choice(dir direction, where, what string, old, new []any) {
	switch {
	case dir == request && len(new) > 0:
		if len(old) == 0 {
			b.add("%s: %s is now restricted to %v", where, what, new)
		}
		for _, v := range without(old, new) {
			b.add("%s: %s %v is gone", where, what, v)
		}
	case dir == response && len(old) > 0:
		if len(new) == 0 {
			b.add("%s: %s is no longer restricted to %v", where, what, old)
		}
		for _, v := range without(new, old) {
			b.add("%s: %s %v is new", where, what, v)
		}
	}
}

// bound compares lower bounds, or negated upper bounds.
func (b *breakage) bound(dir direction, where, key string, hadIt, hasIt bool, old, new float64) {
	if b.narrowing(dir, where, key, hadIt, hasIt) && (dir == request && new > old || dir == response && new < old) {
		b.add("%s: %s changed", where, key)
	}
}

// list returns v as a list; a single item becomes a list of one.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// allowed returns the values that enum or const allows.
func allowed(schema object) []any {
	if v, ok := schema["const"]; ok {
		return []any{v}
	}
	return list(schema["enum"])
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// without returns the items of a that are not in b.
func without(a, b []any) (rest []any) {
	for _, v := range a {
		if !slices.ContainsFunc(b, func(w any) bool { return reflect.DeepEqual(v, w) }) {
			rest = append(rest, v)
		}
	}
	return rest
}
