package db

import (
	"context"
	"time"

	"animalstore"
)

// Failures stores the requests that got an error response.
type Failures interface {
	// AddFailures stores failures, in this order, with ascending ids. It stores only the
	// first of a key and code in each second, and drops the oldest beyond the limits. Their
	// times are at most [FailureDelay] in the past.
	AddFailures(ctx context.Context, failures []animalstore.Failure, limits FailureLimits) error

	// Failures returns those that match the query, by descending id.
	Failures(ctx context.Context, q animalstore.FailureQuery, page Page) ([]animalstore.Failure, error)

	// DropFailures removes at most max failures before a time, oldest first, and returns
	// how many it removed.
	DropFailures(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)
}

// FailureLimits are how many failures are kept.
type FailureLimits struct {
	PerKey int
	Total  int
}

// KeptFailures are the limits of a server.
var KeptFailures = FailureLimits{PerKey: 1000, Total: 1_000_000}

// FailureDelay is the longest time between a failure and its storage. Because of it, a list
// of failures since a time doesn't have to look for them in the whole store.
const FailureDelay = time.Minute

// FailureLists are the statements for lists of failures. Their parameters are the exclusive
// upper bound of ids, the limit, the time and a time before which no failure can be stored
// with a higher id than one that the query selects, then the key, the request and the code,
// beginning with the one that the list is read by.
type FailureLists struct{ All, ByKey, ByRequest, ByCode string }

// Statement returns the statement for a page and its arguments.
func (lists *FailureLists) Statement(q animalstore.FailureQuery, page Page) (statement string, args []any) {
	since := q.Since.Milli()
	args = []any{UpperBound(page.After), page.Limit, since, since - FailureDelay.Milliseconds()}
	switch {
	case q.KeyID != 0:
		return lists.ByKey, append(args, q.KeyID, q.RequestID, string(q.Code))
	case q.RequestID != "":
		return lists.ByRequest, append(args, q.RequestID, string(q.Code))
	case q.Code != "":
		return lists.ByCode, append(args, string(q.Code))
	}
	return lists.All, args
}

// A route that is nil is stored as "", and so is its path.

// StoredRoute returns the route and path of a failure as they are stored.
func StoredRoute(f *animalstore.Failure) (route, path string) {
	if f.Route == nil {
		return "", ""
	}
	return *f.Route, *f.Path
}

// FailureColumns are read by [ScanFailure].
const FailureColumns = "id, time, request_id, key_id, method, route, path, status, code, message, duration_ms"

// ScanFailure scans a failure.
func ScanFailure(row Row) (f animalstore.Failure, err error) {
	var at int64
	var route, path string
	err = row.Scan(&f.ID, &at, &f.RequestID, &f.KeyID, &f.Method, &route, &path,
		&f.Status, (*string)(&f.Code), &f.Message, &f.DurationMs)
	f.Time = animalstore.AtMilli(at)
	if route != "" {
		f.Route, f.Path = &route, &path
	}
	return f, err
}
