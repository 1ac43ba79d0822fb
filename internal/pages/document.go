package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is the part of an OpenAPI document that the page shows.
type document struct {
	Info struct {
		Title, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[ordered[json.RawMessage]]
	Webhooks   ordered[struct{ Post operation }] // by type of event
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
		Responses  map[string]response
		Examples   map[string]example
	}
}

type operation struct {
	OperationID string
	Tags        []string
	Summary     string
	Description string
	Deprecated  bool
	Parameters  []parameter
	RequestBody *struct {
		Description string
		Required    bool
		Content     ordered[media]
	}
	Responses ordered[response]
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      schema
	Example     any
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     ordered[json.RawMessage]
	Content     ordered[media]
}

type media struct {
	Schema   schema
	Example  json.RawMessage
	Examples ordered[example]
}

type example struct {
	Ref     string `json:"$ref"`
	Summary string
	Value   json.RawMessage
}

type schema struct {
	Ref         string `json:"$ref"`
	Description string
	Type        any // a name, or a list of them
	Format      string
	Enum        []any
	Const       any
	Default     any
	Minimum     json.Number
	Maximum     json.Number
	Items       *schema
	Properties  ordered[schema]
	Required    []string
	AnyOf       []schema
	Examples    []json.RawMessage
}

// ordered is an object whose fields keep their order.
type ordered[T any] []entry[T]

type entry[T any] struct {
	Name  string
	Value T
}

func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the opening brace
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		e := entry[T]{Name: fmt.Sprint(name)}
		if err := d.Decode(&e.Value); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		*o = append(*o, e)
	}
	return nil
}

func component[T any](all map[string]T, ref string) T {
	found, ok := all[ref[strings.LastIndex(ref, "/")+1:]]
	if !ok {
		panic("the OpenAPI document refers to " + ref + ", which doesn't exist")
	}
	return found
}

// resolve returns a schema without references. Fields next to a reference take
// precedence over the referenced ones.
func (d *document) resolve(s schema) schema {
	if s.Ref != "" {
		base := d.resolve(component(d.Components.Schemas, s.Ref))
		if s.Description != "" {
			base.Description = s.Description
		}
		if s.Default != nil {
			base.Default = s.Default
		}
		return base
	}
	return s
}

// typeOf describes the type of a value, such as "array of integer".
func (d *document) typeOf(s schema) string {
	s = d.resolve(s)
	var names []string
	for _, choice := range s.AnyOf {
		names = append(names, d.typeOf(choice))
	}
	switch t := s.Type.(type) {
	case string:
		names = append(names, t)
	case []any:
		for _, one := range t {
			names = append(names, fmt.Sprint(one))
		}
	}
	name := strings.Join(names, " or ")
	if s.Items != nil {
		name = strings.Replace(name, "array", "array of "+d.typeOf(*s.Items), 1)
	}
	if s.Format == "date-time" {
		name = strings.Replace(name, "string", "date-time", 1)
	}
	return name
}

// rules describe the constraints on a value beyond its type.
func (d *document) rules(s schema) (rules []string) {
	s = d.resolve(s)
	if s.Const != nil {
		rules = append(rules, fmt.Sprint("always ", s.Const))
	}
	switch {
	case s.Minimum != "" && s.Maximum != "":
		rules = append(rules, fmt.Sprintf("%s to %s", s.Minimum, s.Maximum))
	case s.Minimum != "":
		rules = append(rules, fmt.Sprintf("at least %s", s.Minimum))
	case s.Maximum != "":
		rules = append(rules, fmt.Sprintf("at most %s", s.Maximum))
	}
	if s.Default != nil {
		rules = append(rules, "default "+strings.Trim(fmt.Sprint(s.Default), "[]"))
	}
	return rules
}

// isFile reports whether a body is a file rather than JSON.
func (d *document) isFile(m media) bool { return d.resolve(m.Schema).Format == "binary" }

// example returns an example of a body: the first if there are several.
func (d *document) example(m media) json.RawMessage {
	if m.Example != nil {
		return m.Example
	}
	if len(m.Examples) > 0 {
		e := m.Examples[0].Value
		if e.Ref != "" {
			e = component(d.Components.Examples, e.Ref)
		}
		return e.Value
	}
	if s := d.resolve(m.Schema); len(s.Examples) > 0 {
		return s.Examples[0]
	}
	return nil
}
