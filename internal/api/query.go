package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// listQuery is the parsed query of a list: what all lists have in common.
type listQuery struct {
	path    string // of the list, under /v1
	limit   int    // the size of the page
	given   bool   // whether the limit was in the query
	filters string // encoded, for the links and the cursor

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

// filters are the query of a list, such as [animalstore.OrderQuery].
type filters interface{ Values() url.Values }

// noFilters is the query of a list that has none.
type noFilters struct{}

func (noFilters) Values() url.Values { return nil }

func parseNoFilters(url.Values) (noFilters, error) { return noFilters{}, nil }

// serveList serves a list that is sorted by id. list returns a page of it.
func serveList[Q filters, T any](
	w http.ResponseWriter, r *request, path string, parse func(url.Values) (Q, error),
	list func(context.Context, Q, db.Page) ([]T, error), id func(*T) int64,
) error {
	l, q, err := parseListQuery(path, r.URL.RawQuery, parse)
	if err != nil {
		return err
	}
	page, err := l.page()
	if err != nil {
		return err
	}
	items, err := list(r.Context(), q, page)
	if err != nil {
		return err
	}
	items, link := pageOf(l, items, id)
	setHeader(w, "Link", link)
	return writeResource(w, r, http.StatusOK, items)
}

// parseListQuery reads the query of the list at path. Unknown parameters are ignored.
func parseListQuery[Q filters](path, rawQuery string, parse func(url.Values) (Q, error)) (l *listQuery, q Q, err error) {
	l = &listQuery{path: path, limit: defaultLimit}
	if rawQuery == "" {
		return l, q, nil
	}
	values, err := parseParams(rawQuery)
	if err != nil {
		return nil, q, err
	}
	p := animalstore.NewParameters(values)
	l.limit, l.given = int(p.Integer("limit", 1, maxLimit, defaultLimit)), values.Has("limit")
	cursor, resumed := p.Text("cursor")
	if p.Err() != nil {
		return nil, q, p.Err()
	}
	if q, err = parse(values); err != nil {
		return nil, q, err
	}
	if resumed {
		q, err = resume(l, cursor, q, parse)
		return l, q, err
	}
	l.filters = q.Values().Encode()
	return l, q, nil
}

func parseParams(rawQuery string) (url.Values, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, animalstore.Errorf(animalstore.InvalidParameter,
			"the query is malformed: use name=value pairs joined by &, with %% escapes of two hexadecimal digits")
	}
	return values, nil
}

// page returns the page to read. It has one more item than the client gets, which shows that
// there is a next page.
func (l *listQuery) page() (db.Page, error) {
	if l.resumed && l.position.id < 1 {
		return db.Page{}, errCursor
	}
	return db.Page{After: l.position.id, Limit: l.limit + 1}, nil
}

// pageOf returns a page and its Link header. items may have one more than the page.
func pageOf[T any](l *listQuery, items []T, id func(*T) int64) ([]T, string) {
	if len(items) <= l.limit {
		return items, l.link(nil)
	}
	items = items[:l.limit]
	return items, l.link(&position{id: id(&items[l.limit-1])})
}

// A cursor is a position in a list and the filters of that list, so it stays
// valid when the item it was created from changes or is removed. Its text is
// opaque to clients: only the two functions below know that it is base64 of
// "path|id|filters" or, in a list that isn't sorted by id, "path|id|filters|key".

var cursorEncoding = base64.RawURLEncoding.Strict()

var errCursor = animalstore.Errorf(animalstore.InvalidCursor, "cursor is not valid: copy it unchanged from the Link header, or omit it to start over")

func (l *listQuery) appendCursor(b []byte, last position) []byte {
	text := append(append(make([]byte, 0, 64), l.path...), '|')
	text = append(strconv.AppendInt(text, last.id, 10), '|')
	text = append(text, l.filters...)
	if last.key != "" {
		text = append(append(text, '|'), last.key...)
	}
	return cursorEncoding.AppendEncode(b, text)
}

// resume continues at a cursor, with its filters. A given filter must be the same.
func resume[Q filters](l *listQuery, cursor string, given Q, parse func(url.Values) (Q, error)) (q Q, err error) {
	text, err := cursorEncoding.DecodeString(cursor)
	path, rest, ok1 := strings.Cut(string(text), "|")
	digits, rest, ok2 := strings.Cut(rest, "|")
	encoded, key, _ := strings.Cut(rest, "|")
	id, err2 := strconv.ParseInt(digits, 10, 64)
	values, err3 := url.ParseQuery(encoded)
	if err != nil || err2 != nil || err3 != nil || !ok1 || !ok2 {
		return q, errCursor
	}
	if path != l.path {
		return q, animalstore.Errorf(animalstore.InvalidCursor,
			"cursor belongs to another list: use it with the path that its Link header has")
	}
	for name := range given.Values() {
		if given.Values().Get(name) != values.Get(name) {
			return q, animalstore.Errorf(animalstore.InvalidCursor,
				"cursor was made with another %s: keep the filter, or omit the cursor to start over", name)
		}
	}
	if q, err = parse(values); err != nil {
		return q, errCursor
	}
	l.filters, l.position, l.resumed = q.Values().Encode(), position{id, key}, true
	if string(l.appendCursor(nil, l.position)) != cursor || (key != "") != values.Has("name") {
		return q, errCursor
	}
	return q, nil
}

// link is the Link header: to the start of the list and, unless last is nil, to
// the items after that position.
func (l *listQuery) link(last *position) string {
	params := l.filters
	if l.given {
		params = strings.TrimPrefix(params+"&limit="+strconv.Itoa(l.limit), "&")
	}
	b := append(append(make([]byte, 0, 192), '<'), l.path...)
	if params != "" {
		b = append(append(b, '?'), params...)
	}
	b = append(b, `>; rel="first"`...)
	if last != nil {
		b = append(append(b, ", <"...), l.path...)
		b = l.appendCursor(append(b, "?cursor="...), *last)
		if params != "" {
			b = append(append(b, '&'), params...)
		}
		b = append(b, `>; rel="next"`...)
	}
	return string(b)
}
