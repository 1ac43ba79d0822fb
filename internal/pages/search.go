package pages

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// searchPath is the page with the results of a search, for readers without JavaScript and
// from the guides. On the page about the API, the script searches as the reader types, by
// the same rules.
const searchPath = "/docs/search"

// maxFind is how many code points of a search are used.
const maxFind = 100

// fillers are words that say nothing about what is looked for, unless there are no others.
const fillers = "a an the to of do does i my is are for in how can"

// query are the words that a reader looks for.
type query []string

func newQuery(text string) query {
	var all, telling query
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if len(word) > 3 {
			word = strings.TrimSuffix(word, "s") // orders, as well as order
		}
		all = append(all, word)
		if !slices.Contains(strings.Fields(fillers), word) {
			telling = append(telling, word)
		}
	}
	if telling == nil {
		return all
	}
	return telling
}

// in reports whether a text in lower case has all of the words.
func (q query) in(text string) bool {
	return len(q) > 0 && !slices.ContainsFunc(q, func(word string) bool { return !strings.Contains(text, word) })
}

// matching returns the entries that a search finds: those about what is looked for or, if
// there are none, those that mention it.
func matching[T any](q query, all []T, about, mentions func(T) string) (found []T) {
	for _, text := range []func(T) string{about, mentions} {
		for _, entry := range all {
			if q.in(text(entry)) {
				found = append(found, entry)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// library is everything that a search looks at.
type library struct {
	operations []operationView
	events     []eventView
	passages   []passage
}

type searchResults struct {
	guideFrame
	Operations []operationView
	Events     []eventView
	Passages   []passage
}

// Nothing reports whether the search found nothing.
func (r searchResults) Nothing() bool {
	return len(r.Operations)+len(r.Events)+len(r.Passages) == 0
}

func (p *Pages) newLibrary() library {
	d := p.document()
	var l library
	for _, g := range d.groups() {
		l.operations = append(l.operations, g.Operations...)
	}
	l.events = d.events()
	for _, g := range p.topGuides() {
		l.passages = append(l.passages, g.passages()...)
	}
	return l
}

// serveSearch serves the results of a search.
func (p *Pages) serveSearch(w http.ResponseWriter, r *http.Request) {
	text := strings.TrimSpace(strings.ToValidUTF8(r.URL.Query().Get("find"), "\uFFFD"))
	if utf8.RuneCountInString(text) > maxFind {
		text = string([]rune(text)[:maxFind])
	}
	q, l := newQuery(text), p.library()
	page := p.page("Search – Animal Store")
	page.Find = text
	results := searchResults{guideFrame: p.guideFrame(page)}
	results.Operations = matching(q, l.operations, operationView.Search, func(o operationView) string { return strings.ToLower(o.text) })
	if results.Events = matching(q, l.events, eventView.Search, eventView.Search); len(results.Events) == len(l.events) {
		results.Events = nil // they are all called events
	}
	results.Passages = matching(q, l.passages, passage.Search, passage.Search)
	serveRendered(w, r, p.render("search.html", results))
}
