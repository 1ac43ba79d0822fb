package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"animalstore/client"
)

// pageSize is how many rows a list has.
const pageSize = 20

// page is a page of a list.
type page[T any] struct {
	Rows []T
	Next string // the cursor of the next page; "" on the last
	From string // the cursor of this page; "" on the first
	// Trail are the cursors of the pages before, separated by ".", because a cursor leads
	// only forwards. That of the first is firstPage. It is "" on the first page, and where a
	// link was shared.
	Trail string
	at    url.URL // of this page
}

// Link is the address of another page of the list, with the same filters.
func (p page[T]) Link(cursor, trail string) string {
	query := p.at.Query()
	query.Del("marked")
	for name, value := range map[string]string{"cursor": cursor, "trail": trail} {
		if query.Del(name); value != "" {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return p.at.Path
	}
	return p.at.Path + "?" + query.Encode()
}

// AllMarked reports whether all rows are marked at first.
func (p page[T]) AllMarked() bool { return p.at.Query().Get("marked") == "all" }

// MarkAll is the address of this page with all rows marked, or none if they are.
func (p page[T]) MarkAll() string {
	here := p.Link(p.From, p.Trail)
	switch {
	case p.AllMarked():
		return here
	case strings.Contains(here, "?"):
		return here + "&marked=all"
	}
	return here + "?marked=all"
}

const (
	firstPage = "first"
	// maxTrail is how much of a trail a link carries: about a hundred pages.
	maxTrail = 4000
)

// NextTrail is the trail of the next page.
func (p page[T]) NextTrail() string {
	if p.From == "" {
		return firstPage
	}
	trail := strings.Trim(p.Trail+"."+p.From, ".")
	for len(trail) > maxTrail {
		_, trail, _ = strings.Cut(trail, ".")
	}
	return trail
}

// Previous is the cursor of the page before, "" for the first, and the trail of that page.
func (p page[T]) Previous() (cursor struct{ Cursor, Trail string }) {
	i := strings.LastIndex(p.Trail, ".")
	cursor.Cursor, cursor.Trail = p.Trail[i+1:], p.Trail[:max(0, i)]
	if cursor.Cursor == firstPage {
		cursor.Cursor = ""
	}
	return cursor
}

// tab is a link that filters a list.
type tab struct {
	Title, Path string
	Here        bool
}

// statusTabs are links to the rows of each status in the list at this address, after one
// without a status. Other filters stay.
func statusTabs[S ~string](at *url.URL, here, first string, statuses []S) []tab {
	query := at.Query()
	for _, name := range []string{"status", "cursor", "trail", "marked"} {
		query.Del(name)
	}
	path := url.URL{Path: at.Path, RawQuery: query.Encode()}
	tabs := []tab{{first, path.String(), here == ""}}
	for _, s := range statuses {
		query.Set("status", string(s))
		path.RawQuery = query.Encode()
		tabs = append(tabs, tab{string(s), path.String(), string(s) == here})
	}
	return tabs
}

// here is the path of the page that the response shows: for a form that failed, the page
// with the form.
func (v *visit) here() string {
	if v.r.Method == http.MethodPost {
		return formPage(v.r)
	}
	return v.r.URL.Path
}

// formPage is the page with the form that a request sends.
func formPage(r *http.Request) string {
	switch path := r.URL.Path; path {
	case "/console/sign-in":
		return signInPath(safeNext(r.PostFormValue("next")))
	case "/console/pets", "/console/keys":
		return path + "/new"
	case "/console/orders":
		if id, err := strconv.ParseInt(r.PostFormValue("petId"), 10, 64); err == nil {
			return "/console/pets/" + strconv.FormatInt(id, 10)
		}
		return path
	default: // /console/keys/7/rotate is a form of /console/keys/7
		parts := strings.Split(path, "/")
		page := strings.Join(parts[:min(4, len(parts))], "/")
		if page == path && strings.HasPrefix(path, "/console/pets/") {
			page += "/edit"
		}
		return page
	}
}

// lister is a method of the client that lists.
type lister[T any] func(context.Context, ...client.CallOption) iter.Seq2[T, error]

// matching is a list with filters.
func matching[Q, T any](list func(context.Context, Q, ...client.CallOption) iter.Seq2[T, error], q Q) lister[T] {
	return func(ctx context.Context, options ...client.CallOption) iter.Seq2[T, error] {
		return list(ctx, q, options...)
	}
}

// readPage makes one call of the API for a page of a list. The page may have few rows, or
// none, although others follow: the API limits how many it looks at.
func readPage[T any](v *visit, list lister[T], size int) (p page[T], err error) {
	query := v.r.URL.Query()
	p = page[T]{
		From: query.Get("cursor"), Trail: query.Get("trail"),
		at: url.URL{Path: v.here(), RawQuery: v.r.URL.RawQuery},
	}
	p.Rows, p.Next, err = readRows(v, list, client.FromCursor(p.From), client.PageSize(size))
	return p, err
}

// readRows makes one call of the API for rows of a list, usually the first hundred, and
// returns the cursor of those that follow.
func readRows[T any](v *visit, list lister[T], options ...client.CallOption) (rows []T, next string, err error) {
	var meta client.Meta
	for row, err := range list(v.r.Context(), append(options, client.OnePage(), client.ReadMeta(&meta))...) {
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, row)
	}
	return rows, meta.NextCursor, nil
}

// pathID is an id in the path; 0 if the path has none of this name.
func (v *visit) pathID(name string) (int64, error) {
	text := v.r.PathValue(name)
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, notFound("This isn’t a valid id.")
	}
	return id, nil
}

// field is a value that was sent with a form. Browsers send line breaks as \r\n, and an
// input has none.
func (v *visit) field(name string) string { return v.r.PostFormValue(name) }

var grouped = regexp.MustCompile(`^[-+]?[0-9]{1,3}(,[0-9]{3})+$`)

// parseInteger reads a whole number as people write it: 1000 or 1,000.
func parseInteger(text string) (int64, error) {
	if text = strings.TrimSpace(text); grouped.MatchString(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	return strconv.ParseInt(text, 10, 64)
}

// integer reads a field. The error is like one of the API.
func (v *visit) integer(name, label string) (int64, error) {
	n, err := parseInteger(v.field(name))
	if err != nil {
		return 0, badField(name, label+" must be a whole number")
	}
	return n, nil
}

// idFilter reads the id that a list is filtered by, or 0 for none.
func idFilter(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	id, err := parseInteger(text)
	if err != nil || id < 1 {
		return 0, badField(name, "an id is a whole number, at least 1")
	}
	return id, nil
}

// newOnce is for a hidden field that makes a form take effect once, however often it is
// sent.
func newOnce() string { return newToken() }

// idempotencyKey is for calls of the API that support it.
func (v *visit) idempotencyKey() client.CallOption {
	if once := v.field("once"); validOnce(once) {
		return client.IdempotencyKey("console-" + once)
	}
	return client.IdempotencyKey("console-" + newOnce())
}

// sentState is the version that a form was made from.
func (v *visit) sentState() formState { return formState{ETag: v.field("etag")} }

// ifMatch allows a change only of the version that the form was made from.
func (v *visit) ifMatch() client.CallOption {
	return client.IfMatch(cmp.Or(v.field("etag"), `"none"`))
}

func validOnce(once string) bool {
	return len(once) >= 20 && len(once) <= 100 && !strings.ContainsFunc(once, func(c rune) bool { return c <= ' ' || c > '~' })
}

// errSentTwice means that there is nothing left to do. If the first response had a secret,
// it can't be shown again.
var errSentTwice = errors.New("the form was sent before")

// useForm is for calls of the API that take no Idempotency-Key. It returns errSentTwice
// unless this is the first time that the form is sent.
func (v *visit) useForm() error {
	once := v.field("once")
	if !validOnce(once) {
		return errSentTwice
	}
	first, err := v.c.Sessions.UseForm(v.r.Context(), sha256.Sum256(append(v.token[:], once...)), v.c.Now())
	if err == nil && !first {
		return errSentTwice
	}
	return err
}
