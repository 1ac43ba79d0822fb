package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const maxPageSize = 100

// list iterates over a list. It requests a page when its first entry is needed.
func list[T any](ctx context.Context, c *Client, name, path string, query url.Values, options []CallOption,
	check func(*T) bool) iter.Seq2[T, error] {
	given := callOptions{pageSize: maxPageSize}
	for _, option := range options {
		option(&given)
	}
	query.Set("limit", strconv.Itoa(given.pageSize))
	if given.cursor != "" {
		query.Set("cursor", given.cursor)
	}
	start := path + "?" + query.Encode()
	return func(yield func(T, error) bool) {
		opts := options
		for at := start; at != ""; {
			op := operation{name: name, method: http.MethodGet, path: at}
			page, k, err := receiveCall(ctx, c, op, opts, eachIs(check))
			if err == nil && k.next == at {
				err = k.wrap(errors.New("the link to the next page leads to the same page"))
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, entry := range page {
				if !yield(entry, nil) {
					return
				}
			}
			if given.onePage {
				return
			}
			at = k.next
			opts = withoutConditions(options)
		}
	}
}

// eachIs checks every entry of a page.
func eachIs[T any](check func(*T) bool) func(*[]T) bool {
	return func(page *[]T) bool {
		for i := range *page {
			if !check(&(*page)[i]) {
				return false
			}
		}
		return *page != nil // null isn't a valid page
	}
}

// withoutConditions removes the options that only apply to the first page.
func withoutConditions(options []CallOption) []CallOption {
	return append(options[:len(options):len(options)], func(o *callOptions) { o.ifMatch, o.matchGiven, o.ifNoneMatch = "", false, "" })
}

// nextLink is the path of the next page, below /v1, or "" if there is none.
func (c *Client) nextLink(res *http.Response) (string, error) {
	target := findNext(res.Header)
	if target == "" {
		return "", nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", errors.New("the link to the next page isn't a URL")
	}
	// A proxy may have rewritten the link, or may serve the API under a different path
	// that the service doesn't know about.
	if u.Host != "" && (u.Scheme != c.base.Scheme || u.Host != c.base.Host) {
		return "", errors.New("the link to the next page leads to another host, where the key must not be sent")
	}
	path, ok := strings.CutPrefix(u.EscapedPath(), c.base.EscapedPath()+"/")
	if !ok {
		path, ok = strings.CutPrefix(u.EscapedPath(), version+"/")
	}
	if !ok {
		return "", errors.New("the link to the next page leads outside the API")
	}
	return "/" + path + "?" + u.RawQuery, nil
}

// nextRelation finds the link with the relation next in Link headers (RFC 8288).
var nextRelation = regexp.MustCompile(`(?i)<([^>]*)>[^<]*;\s*rel\s*=\s*"?([^";,<]*\s)?next(["\s,;]|$)`)

func findNext(h http.Header) string {
	found := nextRelation.FindStringSubmatch(strings.Join(h.Values("Link"), ", "))
	if found == nil {
		return ""
	}
	return found[1]
}
