package api

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"animalstore"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// listQuery is the parsed query of a list: what all lists have in common.
type listQuery struct {
	path       string            // of the list, under /v1
	limit      int               // the size of the page
	given      bool              // whether the limit was in the query
	filters    map[string]string // those that apply
	fromCursor map[string]bool   // those of them that came with the cursor

	// The position after which the page begins, if there is a cursor.
	position position
	resumed  bool
}

// position is where an item is in a list: its id, and in a list that isn't sorted by id
// also what it is sorted by.
type position struct {
	id  int64
	key string
}

// parseListQuery reads the query of the list at path. names are its filters.
// Unknown parameters are ignored.
func parseListQuery(path, rawQuery string, names ...string) (*listQuery, error) {
	q := &listQuery{path: path, limit: defaultLimit}
	if rawQuery == "" {
		return q, nil
	}
	params, err := parseParams(rawQuery, repeatable[path])
	if err != nil {
		return nil, err
	}
	for _, name := range append(names, "limit", "cursor") {
		if n := len(params[name]); n > 1 {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "%s is given %d times: give it once", name, n)
		}
	}
	if params.Has("limit") {
		n, ok := parseInt64(params.Get("limit"))
		if !ok || n < 1 || n > maxLimit {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "limit must be an integer from 1 to %d", maxLimit)
		}
		q.limit, q.given = int(n), true
	}
	for _, name := range names {
		if params.Has(name) {
			q.setFilter(name, params.Get(name))
		}
	}
	if params.Has("cursor") {
		if err := q.resume(params.Get("cursor"), names); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// repeatable are the parameters of lists that may be given several times, by path.
var repeatable = map[string]string{"/v1/pets": "id", "/v1/photos": "petId"}

// parseParams reads a query. list is a parameter that may be given as list=1,2 or as
// list=1&list=2: clients write either, regardless of the document.
func parseParams(rawQuery, list string) (url.Values, error) {
	params, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, malformedQuery()
	}
	if values := params[list]; len(values) > 1 {
		params.Set(list, strings.Join(values, ","))
	}
	return params, nil
}

func (q *listQuery) setFilter(name, value string) {
	if q.filters == nil { // most lists have no filter
		q.filters, q.fromCursor = map[string]string{}, map[string]bool{}
	}
	q.filters[name] = value
}

func malformedQuery() error {
	return animalstore.Errorf(animalstore.InvalidParameter, "the query is malformed: use name=value pairs joined by &, with %% escapes of two hexadecimal digits")
}

// pageOf returns a page and its Link header. items may have one more than the page, which
// shows that there is a next one.
func pageOf[T any](q *listQuery, items []T, id func(*T) int64) ([]T, string) {
	if len(items) <= q.limit {
		return items, q.link(nil)
	}
	items = items[:q.limit]
	return items, q.link(&position{id: id(&items[q.limit-1])})
}

// writePage writes a page of a list.
func writePage[T any](w http.ResponseWriter, r *request, q *listQuery, items []T, id func(*T) int64) error {
	items, link := pageOf(q, items, id)
	setHeader(w, "Link", link)
	return writeResource(w, r, http.StatusOK, items)
}

// A cursor is a position in a list and the filters of that list, so it stays
// valid when the item it was created from changes or is removed. Its text is
// opaque to clients: only the two functions below know that it is base64 of
// "path|id|filters" or, in a list that isn't sorted by id, "path|id|filters|key".

var cursorEncoding = base64.RawURLEncoding.Strict()

var errCursor = animalstore.Errorf(animalstore.InvalidCursor, "cursor is not valid: copy it unchanged from the Link header, or omit it to start over")

func (q *listQuery) appendCursor(b []byte, last position) []byte {
	text := append(append(make([]byte, 0, 64), q.path...), '|')
	text = append(strconv.AppendInt(text, last.id, 10), '|')
	text = append(text, encodeFilters(q.filters)...)
	if last.key != "" {
		text = append(append(text, '|'), last.key...)
	}
	return cursorEncoding.AppendEncode(b, text)
}

// resume continues at a cursor. A filter in the query must be the same as the
// cursor's; one that isn't in the query is taken from the cursor.
func (q *listQuery) resume(cursor string, names []string) error {
	text, err := cursorEncoding.DecodeString(cursor)
	path, rest, ok1 := strings.Cut(string(text), "|")
	digits, rest, ok2 := strings.Cut(rest, "|")
	rawFilters, key, _ := strings.Cut(rest, "|")
	id, err2 := strconv.ParseInt(digits, 10, 64)
	filters, err3 := url.ParseQuery(rawFilters)
	if err != nil || err2 != nil || err3 != nil || !ok1 || !ok2 {
		return errCursor
	}
	if path != q.path {
		return animalstore.Errorf(animalstore.InvalidCursor, "cursor belongs to another list: use it with the path that its Link header has")
	}
	for _, name := range names {
		given, isGiven := q.filters[name]
		stored, isStored := filters.Get(name), filters.Has(name)
		if isGiven && given != stored {
			return animalstore.Errorf(animalstore.InvalidCursor, "cursor was made with another %s: keep the filter, or omit the cursor to start over", name)
		}
		if isStored {
			q.setFilter(name, stored)
			q.fromCursor[name] = !isGiven
		}
	}
	q.position, q.resumed = position{id, key}, true
	if _, byName := q.filters["name"]; string(q.appendCursor(nil, q.position)) != cursor || (key != "") != byName {
		return errCursor
	}
	return nil
}

// positiveID is the position in a list of positive ids; 0 is its start.
func (q *listQuery) positiveID() (int64, error) {
	if q.resumed && q.position.id < 1 {
		return 0, errCursor
	}
	return q.position.id, nil
}

// link is the Link header: to the start of the list and, unless last is nil, to
// the items after that position.
func (q *listQuery) link(last *position) string {
	params := q.params()
	b := append(append(make([]byte, 0, 192), '<'), q.path...)
	if params != "" {
		b = append(append(b, '?'), params...)
	}
	b = append(b, `>; rel="first"`...)
	if last != nil {
		b = append(append(b, ", <"...), q.path...)
		b = q.appendCursor(append(b, "?cursor="...), *last)
		if params != "" {
			b = append(append(b, '&'), params...)
		}
		b = append(b, `>; rel="next"`...)
	}
	return string(b)
}

// params is the query string of the filters, and the limit if it was given.
func (q *listQuery) params() string {
	params := encodeFilters(q.filters)
	if q.given {
		params = strings.TrimPrefix(params+"&limit="+strconv.Itoa(q.limit), "&")
	}
	return params
}

func encodeFilters(filters map[string]string) string {
	if len(filters) == 0 {
		return ""
	}
	values := make(url.Values, len(filters))
	for name, value := range filters {
		values.Set(name, value)
	}
	return values.Encode()
}

// invalidFilter is the error for the value of a filter, or for the cursor if the
// filter came from there.
func (q *listQuery) invalidFilter(name, want string) error {
	if q.fromCursor[name] {
		return errCursor
	}
	return animalstore.Errorf(animalstore.InvalidParameter, "%s %s", name, want)
}

// filterOneOf is the status or state a list is restricted to, or "".
func filterOneOf[S ~string](q *listQuery, name string, values []S) (S, error) {
	text, ok := q.filters[name]
	if ok && !slices.Contains(values, S(text)) {
		return "", q.invalidFilter(name, animalstore.MustBeOneOf(values))
	}
	return S(text), nil
}

// filterSomeOf are the statuses or states a list is restricted to, from a comma-separated
// list, or nil.
func filterSomeOf[S ~string](q *listQuery, name string, values []S) (some []S, err error) {
	text, ok := q.filters[name]
	if !ok {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(values, S(part)) {
			return nil, q.invalidFilter(name, animalstore.MustBeOneOf(values)+", or several of them, separated by commas")
		}
		if !slices.Contains(some, S(part)) {
			some = append(some, S(part))
		}
	}
	return some, nil
}

// idFilter is the positive id a list is restricted to, or 0.
func idFilter(q *listQuery, name string) (int64, error) {
	text, ok := q.filters[name]
	if !ok {
		return 0, nil
	}
	id, ok := parseID(text)
	if !ok {
		return 0, q.invalidFilter(name, "must be a positive integer")
	}
	return id, nil
}

// parseID reads a positive int64 in canonical form.
func parseID(s string) (int64, bool) {
	id, ok := parseInt64(s)
	return id, ok && id > 0
}

// parseInt64 reads an int64 in canonical form: the digits that we would write.
func parseInt64(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
