package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// reference is the data of the API page.
type reference struct {
	page
	Summary  string
	About    template.HTML
	Groups   []group
	Events   []eventView
	Guides   []guide
	Passages []passage
}

// group is the operations of one tag.
type group struct {
	Name       string
	About      string
	Operations []operationView
}

// operationView is an operation as the page shows it.
type operationView struct {
	ID, Method, Path string
	Summary          string
	About            template.HTML
	Deprecated       bool
	Parameters       []parameterView
	Body             *bodyView
	Responses        []responseView
	Address          string // of the request in the snippets
	Snippets         []snippet
	text             string // what it does, for the search
}

// Search is the text of the operation that a search looks at first.
func (o operationView) Search() string {
	words := []string{o.ID, o.Method, o.Path, o.Summary, tasks[o.ID]}
	for _, p := range o.Parameters {
		words = append(words, p.Name)
	}
	if o.Body != nil {
		for _, f := range o.Body.Fields {
			words = append(words, f.Name)
		}
	}
	return strings.ToLower(strings.Join(words, " "))
}

// Asks reports whether the page asks for confirmation before it sends the request,
// because the request deletes or revokes something.
func (o operationView) Asks() bool {
	return o.Method == "DELETE" || strings.HasPrefix(o.ID, "rotate") || strings.HasPrefix(o.ID, "revoke")
}

// eventView is a type of event as the page shows it.
type eventView struct {
	Type    string
	Summary string
	About   template.HTML
	Fields  []field
	Example string
}

// Search is the searchable text of the event.
func (e eventView) Search() string { return strings.ToLower(e.Type + " event webhook " + e.Summary) }

type parameterView struct {
	field
	In       string
	Choices  []any // nil unless it's an enum
	Hint     string
	Optional bool
}

type bodyView struct {
	About    template.HTML
	Optional bool
	File     string // the media type of a body that is a file; "" if it is JSON
	Fields   []field
	Example  string
}

type responseView struct {
	Status   string
	About    template.HTML
	Headers  []string
	File     bool // the body is a file
	Fields   []field
	Examples []exampleView
}

type exampleView struct{ Summary, Text string }

// Class is the kind of status, such as "s2".
func (r responseView) Class() string { return "s" + r.Status[:1] }

// Success reports whether this is the response to a successful request.
func (r responseView) Success() bool { return r.Status[0] == '2' }

// field is a parameter, or a value within a body.
type field struct {
	Name     string
	Type     string
	Rules    string
	Required bool
	About    template.HTML
}

func (p *Pages) readDocument() *document {
	var d document
	if err := json.Unmarshal(p.OpenAPI, &d); err != nil {
		panic(err) // the document is part of the binary
	}
	return &d
}

func (p *Pages) renderReference() *content {
	d := p.document()
	guides := p.topGuides()
	var passages []passage
	for _, g := range guides {
		passages = append(passages, g.passages()...)
	}
	return newContent(typeHTML, p.render("docs.html", reference{
		page:     p.page("API – Animal Store"),
		Summary:  d.Info.Summary,
		About:    toHTML(d.Info.Description),
		Groups:   d.groups(),
		Events:   d.events(),
		Guides:   guides,
		Passages: passages,
	}))
}

// groups lists the operations by tag, in the order of the document.
func (d *document) groups() (groups []group) {
	for _, tag := range d.Tags {
		groups = append(groups, group{Name: tag.Name, About: tag.Description})
	}
	for _, path := range d.Paths {
		for _, item := range path.Value {
			var o operation
			if json.Unmarshal(item.Value, &o) != nil || o.OperationID == "" {
				continue // not an operation
			}
			view := d.view(path.Name, item.Name, o)
			i := slices.IndexFunc(groups, func(g group) bool { return len(o.Tags) > 0 && g.Name == o.Tags[0] })
			if i < 0 {
				panic(o.OperationID + " has no tag that the OpenAPI document describes")
			}
			groups[i].Operations = append(groups[i].Operations, view)
		}
	}
	return groups
}

// events lists the types of events: what webhooks receive.
func (d *document) events() (events []eventView) {
	for _, w := range d.Webhooks {
		body := w.Value.Post.RequestBody.Content[0].Value
		events = append(events, eventView{
			Type: w.Name, Summary: w.Value.Post.Summary, About: toHTML(w.Value.Post.Description),
			Fields: d.fields("", body.Schema), Example: indented(d.example(body)),
		})
	}
	return events
}

func (d *document) view(path, method string, o operation) operationView {
	v := operationView{
		ID: o.OperationID, Method: strings.ToUpper(method), Path: path,
		Summary: o.Summary, About: toHTML(o.Description), Deprecated: o.Deprecated, text: o.Description,
	}
	for _, p := range o.Parameters {
		v.Parameters = append(v.Parameters, d.parameter(p))
		v.text += " " + p.Description
	}
	if o.RequestBody != nil {
		// Of several media types, the first is the usual one.
		body := o.RequestBody.Content[0].Value
		v.Body = &bodyView{
			About:    toHTML(o.RequestBody.Description),
			Optional: !o.RequestBody.Required,
			Fields:   d.fields("", body.Schema),
			Example:  indented(d.example(body)),
		}
		if d.isFile(body) {
			v.Body.File = o.RequestBody.Content[0].Name
		}
	}
	for _, r := range o.Responses {
		v.Responses = append(v.Responses, d.response(r.Name, r.Value))
	}
	v.Address = v.sampleRequest()
	v.Snippets = v.snippets()
	return v
}

func (d *document) parameter(p parameter) parameterView {
	if p.Ref != "" {
		p = component(d.Components.Parameters, p.Ref)
	}
	s := d.resolve(p.Schema)
	v := parameterView{In: p.In, Choices: s.Enum, Optional: !p.Required, Hint: exampleText(p.Example)}
	v.field = field{p.Name, d.typeOf(s), strings.Join(d.rules(s), ", "), p.Required, toHTML(p.Description)}
	return v
}

// exampleText is an example formatted for a path, query or header.
func exampleText(example any) string {
	switch value := example.(type) {
	case nil:
		return ""
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, exampleText(item))
		}
		return strings.Join(items, ",")
	default:
		return fmt.Sprint(value)
	}
}

// uninteresting headers are in every response, and the page explains them once.
var uninteresting = []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

func (d *document) response(status string, r response) responseView {
	if r.Ref != "" {
		r = component(d.Components.Responses, r.Ref)
	}
	v := responseView{Status: status, About: toHTML(r.Description)}
	for _, h := range r.Headers {
		if !slices.Contains(uninteresting, h.Name) {
			v.Headers = append(v.Headers, h.Name)
		}
	}
	for _, m := range r.Content {
		v.File = d.isFile(m.Value)
		if v.Success() { // errors all have the same fields
			v.Fields = d.fields("", m.Value.Schema)
			for i := range v.Fields {
				v.Fields[i].Required = false // only matters in requests
			}
		}
		for _, e := range m.Value.Examples {
			if e.Value.Ref != "" {
				e.Value = component(d.Components.Examples, e.Value.Ref)
			}
			v.Examples = append(v.Examples, exampleView{e.Value.Summary, indented(e.Value.Value)})
		}
		if one := d.example(m.Value); v.Examples == nil && one != nil {
			v.Examples = []exampleView{{"", indented(one)}}
		}
	}
	return v
}

// fields lists the values in a body. The fields of a nested object follow it, with
// names like minute.limit.
func (d *document) fields(within string, s schema) (all []field) {
	s = d.resolve(s)
	if s.Items != nil {
		return d.fields(within, *s.Items)
	}
	for _, p := range s.Properties {
		value := d.resolve(p.Value)
		rules := d.rules(value)
		if value.Enum != nil {
			rules = append([]string{"one of " + strings.ReplaceAll(exampleText(value.Enum), ",", ", ")}, rules...)
		}
		all = append(all, field{within + p.Name, d.typeOf(value), strings.Join(rules, ", "), slices.Contains(s.Required, p.Name), toHTML(value.Description)})
		if len(value.Properties) > 0 {
			all = append(all, d.fields(within+p.Name+".", value)...)
		}
	}
	return all
}

// toHTML renders a description.
func toHTML(text string) template.HTML {
	var b bytes.Buffer
	if err := markdown.Convert([]byte(text), &b); err != nil {
		panic(err) // a bytes.Buffer never fails
	}
	return template.HTML(b.String()) // made from our own document, without raw HTML
}

// indented formats JSON for people: short values on one line.
func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil || b.Len() <= 48 {
		return b.String()
	}
	b.Reset()
	json.Indent(&b, value, "", "  ")
	return b.String()
}
