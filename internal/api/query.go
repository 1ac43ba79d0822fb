package api

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// listQuery is the query of a list, checked as far as all lists are alike.
type listQuery struct {
	path    string            // of the list, under /v1
	limit   int               // how many to show
	given   bool              // whether the limit was in the query
	filters map[string]string // the filters in force
	carried map[string]bool   // those of them that the cursor brought

	// The id of the last item of the page before, if a cursor gave one.
	position int64
	resumed  bool
}

// parseListQuery reads the query of the list at path. names are its filters.
// Parameters it does not know are ignored.
func parseListQuery(path, rawQuery string, names ...string) (*listQuery, error) {
	q := &listQuery{path: path, limit: defaultLimit}
	if rawQuery == "" {
		return q, nil
	}
	var room [4]param // enough for most
	params, err := appendParams(room[:0], rawQuery)
	if err != nil {
		return nil, malformedQuery()
	}
	for _, name := range append(names, "limit", "cursor") {
		if n := count(params, name); n > 1 {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "%s is given %d times: give it once", name, n)
		}
	}
	if text, ok := get(params, "limit"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit || strconv.Itoa(n) != text {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "limit must be an integer from 1 to %d", maxLimit)
		}
		q.limit, q.given = n, true
	}
	for _, name := range names {
		if value, ok := get(params, name); ok {
			q.filter(name, value)
		}
	}
	if cursor, ok := get(params, "cursor"); ok {
		if err := q.resume(cursor, names); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// param is a parameter of a query.
type param struct{ name, value string }

// appendParams reads a query as [url.ParseQuery] does, without its map.
func appendParams(params []param, rawQuery string) ([]param, error) {
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if strings.Contains(pair, ";") {
			return nil, errors.New("a semicolon in a query")
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, err
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, err
		}
		if pair != "" {
			params = append(params, param{name, value})
		}
	}
	return params, nil
}

func get(params []param, name string) (value string, ok bool) {
	for _, p := range params {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

func count(params []param, name string) (n int) {
	for _, p := range params {
		if p.name == name {
			n++
		}
	}
	return n
}

func (q *listQuery) filter(name, value string) {
	if q.filters == nil { // most lists have no filter
		q.filters, q.carried = map[string]string{}, map[string]bool{}
	}
	q.filters[name] = value
}

func malformedQuery() error {
	return animalstore.Errorf(animalstore.InvalidParameter, "the query is not well-formed: write it as name=value pairs joined by &, with %% escapes of two hexadecimal digits")
}

// pageOf cuts items, of which one more than asked for was read, to the page and
// makes its Link header.
func pageOf[T any](q *listQuery, items []T, id func(*T) int64) ([]T, string) {
	if len(items) <= q.limit {
		return items, q.link(nil)
	}
	items = items[:q.limit]
	last := id(&items[q.limit-1])
	return items, q.link(&last)
}

// writePage answers with a page of a list.
func writePage[T any](w http.ResponseWriter, r *request, q *listQuery, items []T, id func(*T) int64) error {
	items, link := pageOf(q, items, id)
	w.Header()["Link"] = []string{link}
	return writeResource(w, r, http.StatusOK, items)
}

// A cursor is a position in a list, and the filters of that list: what it was
// made from may change or go away. Its text is opaque to clients, so only the
// two functions below know that it is base64 of "path|id|filters".

var cursorEncoding = base64.RawURLEncoding.Strict()

var errCursor = animalstore.Errorf(animalstore.InvalidCursor, "cursor is not one of ours: use it as it stands in the Link header, or leave it out to start over")

func (q *listQuery) appendCursor(b []byte, last int64) []byte {
	text := append(append(make([]byte, 0, 64), q.path...), '|')
	text = append(strconv.AppendInt(text, last, 10), '|')
	return cursorEncoding.AppendEncode(b, append(text, encodeFilters(q.filters)...))
}

// resume continues where a cursor left off. A filter that is given must be the
// cursor's; one that is not is taken from it.
func (q *listQuery) resume(cursor string, names []string) error {
	text, err := cursorEncoding.DecodeString(cursor)
	path, rest, ok1 := strings.Cut(string(text), "|")
	id, rawFilters, ok2 := strings.Cut(rest, "|")
	position, err2 := strconv.ParseInt(id, 10, 64)
	filters, err3 := appendParams(nil, rawFilters)
	if err != nil || err2 != nil || err3 != nil || !ok1 || !ok2 {
		return errCursor
	}
	if path != q.path {
		return animalstore.Errorf(animalstore.InvalidCursor, "cursor belongs to another list: use it where its Link header came from")
	}
	for _, name := range names {
		given, isGiven := q.filters[name]
		carried, isCarried := get(filters, name)
		if isGiven && given != carried {
			return animalstore.Errorf(animalstore.InvalidCursor, "cursor was made with another %s: keep the filter, or leave the cursor out to start over", name)
		}
		if isCarried {
			q.filter(name, carried)
			q.carried[name] = !isGiven
		}
	}
	q.position, q.resumed = position, true
	if string(q.appendCursor(nil, position)) != cursor {
		return errCursor
	}
	return nil
}

// before is the position in a list of positive ids that descend; 0 at its start.
func (q *listQuery) before() (int64, error) {
	if q.resumed && q.position < 1 {
		return 0, errCursor
	}
	return q.position, nil
}

// link leads to where the list starts, and to what comes after the item with the
// id last, unless that is nil.
func (q *listQuery) link(last *int64) string {
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

// params are the filters, and the limit if it was given.
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

// wrong refuses the value of a filter, or the cursor if it brought the filter.
func (q *listQuery) wrong(name, want string) error {
	if q.carried[name] {
		return errCursor
	}
	return animalstore.Errorf(animalstore.InvalidParameter, "%s %s", name, want)
}

// statusFilter is the status a list is restricted to, or "".
func statusFilter[S ~string](q *listQuery, parse func(string) (S, bool), all []S) (S, error) {
	text, ok := q.filters["status"]
	if !ok {
		return "", nil
	}
	status, ok := parse(text)
	if !ok {
		return "", q.wrong("status", "must be one of "+join(all))
	}
	return status, nil
}

// idFilter is the positive id a list is restricted to, or 0.
func idFilter(q *listQuery, name string) (int64, error) {
	text, ok := q.filters[name]
	if !ok {
		return 0, nil
	}
	id, ok := parseID(text)
	if !ok {
		return 0, q.wrong(name, "must be a positive integer")
	}
	return id, nil
}

// parseID reads an id as we write them: a positive int64 in plain digits.
func parseID(s string) (int64, bool) {
	id, ok := parseInt64(s)
	return id, ok && id > 0
}

// parseInt64 reads an int64 in plain digits.
func parseInt64(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
