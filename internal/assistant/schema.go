package assistant

import (
	"encoding/json"
	"maps"
	"strings"

	"animalstore/openapi"
)

// object is a JSON schema, or a part of one.
type object = map[string]any

// parameter is an argument of a tool.
type parameter struct {
	name     string
	api      string // its name in the API, if that's another
	schema   object
	required bool
}

func parameterNames(parameters []parameter) []string {
	names := make([]string, len(parameters))
	for i, p := range parameters {
		names[i] = p.name
	}
	return names
}

func required(p parameter) parameter {
	p.required = true
	return p
}

func text(name string, maxLength int, description string) parameter {
	return parameter{name: name, schema: object{"type": "string", "minLength": 1, "maxLength": maxLength, "description": description}}
}

// nullable is a text that can be removed with null.
func nullable(name string, maxLength int, description string) parameter {
	p := text(name, maxLength, description)
	p.schema["type"] = []string{"string", "null"}
	return p
}

func integer(name, description string) parameter {
	return parameter{name: name, schema: object{"type": "integer", "description": description}}
}

func id(name, description string) parameter {
	p := integer(name, description)
	p.schema["minimum"] = 1
	return p
}

func ids(name, api, description string) parameter {
	return parameter{name: name, api: api, schema: object{
		"type": "array", "items": object{"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": maxPage, "description": description,
	}}
}

func choice[S ~string](name string, values []S, description string) parameter {
	return parameter{name: name, schema: object{"type": "string", "enum": values, "description": description}}
}

func choices[S ~string](name string, values []S, description string) parameter {
	return parameter{name: name, schema: object{
		"type": "array", "items": object{"type": "string", "enum": values}, "minItems": 1, "description": description,
	}}
}

// input is the schema of a tool's arguments.
func input(parameters []parameter) object {
	properties, names := object{}, []string{}
	for _, p := range parameters {
		properties[p.name] = p.schema
		if p.required {
			names = append(names, p.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

// objects is a list of 1 to most objects with these fields.
func objects(name string, most int, description string, fields ...parameter) parameter {
	return parameter{name: name, schema: object{
		"type": "array", "items": input(fields), "minItems": 1, "maxItems": most, "description": description,
	}}
}

// replayable is the schema of a result that may be that of an earlier call.
func replayable(schema object) object {
	properties := maps.Clone(schema["properties"].(object))
	properties["replayed"] = object{"type": "boolean", "const": true,
		"description": "There only if an earlier call had the same idempotencyKey. This is its result: nothing was done again."}
	schema = maps.Clone(schema)
	schema["properties"] = properties
	return schema
}

// output is the schema of a result with these fields, which are all always there.
func output(fields object) object {
	names := []string{}
	for name := range fields {
		names = append(names, name)
	}
	return object{"type": "object", "properties": fields, "required": names}
}

func listOf(schema object) object { return object{"type": "array", "items": schema} }

// nextCursor is where the next page of a result begins.
var nextCursor = object{
	"type": []string{"string", "null"}, "description": "To get the next page, call again with the same arguments and this as cursor. Null on the last page.",
}

// resources returns the schemas in the OpenAPI document. A result contains what the API
// returned, so these describe it.
func resources() func(name string) object {
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(openapi.JSON, &document); err != nil {
		panic(err) // it is part of the program
	}
	schemas := document.Components.Schemas
	return func(name string) object { return inline(schemas[name], schemas).(object) }
}

// inline replaces references, because not all assistants follow them, and omits what
// isn't JSON Schema, because strict ones refuse it.
func inline(schema any, schemas map[string]any) any {
	switch schema := schema.(type) {
	case []any:
		all := make([]any, len(schema))
		for i := range schema {
			all[i] = inline(schema[i], schemas)
		}
		return all
	case object:
		all := object{}
		if ref, ok := schema["$ref"].(string); ok {
			name := ref[strings.LastIndexByte(ref, '/')+1:]
			maps.Copy(all, inline(schemas[name], schemas).(object))
		}
		for name, value := range schema {
			openAPI := name == "examples" || strings.HasPrefix(name, "x-") || name == "format" && value == "int64"
			if name != "$ref" && !openAPI {
				all[name] = inline(value, schemas)
			}
		}
		return all
	}
	return schema
}
