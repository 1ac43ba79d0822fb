package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// limitHeaders are spelled here as the interface spells them.
var limitHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// wireSpelling refuses a response under /v1 whose limits are not spelled as
// documented. Clients that read headers as they stand depend on it.
func wireSpelling(path string, h http.Header) error {
	if path != "/v1" && !strings.HasPrefix(path, "/v1/") {
		return nil
	}
	var wrong []error
	for _, name := range limitHeaders {
		if len(h[name]) != 1 {
			wrong = append(wrong, fmt.Errorf("on the wire: got %d lines spelled %s, want one, in %v", len(h[name]), name, h))
		}
	}
	return errors.Join(wrong...)
}

// longestReset bounds Reset: a day, a ban of a day, and what tests set the clock
// back by.
const longestReset = 49 * time.Hour

// limits are the three headers of a response.
type limits struct{ limit, remaining, reset int64 }

func (a response) limits() limits {
	l, _ := readLimits(a.header) // every response is checked on its way
	return l
}

func readLimits(h http.Header) (l limits, err error) {
	for i, dst := range []*int64{&l.limit, &l.remaining, &l.reset} {
		text := h.Get(limitHeaders[i])
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil || strconv.FormatInt(n, 10) != text || n < 0 {
			err = errors.Join(err, fmt.Errorf("%s: got %q, want an integer", limitHeaders[i], text))
		}
		*dst = n
	}
	return l, err
}

// checkLimits holds the headers that tell the caller how it stands to what they
// may say, whatever the response.
func (e *exchange) checkLimits() error {
	l, err := readLimits(e.answered)
	if err != nil {
		return err
	}
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if l.limit < 1 || l.remaining > l.limit {
		complain("X-RateLimit-Remaining: got %d of %d, want 0 to the limit", l.remaining, l.limit)
	}
	left := time.Unix(l.reset, 0).Sub(e.now)
	if left <= 0 || left > longestReset {
		complain("X-RateLimit-Reset: got %d, which is in %v, want a time to come", l.reset, left)
	}
	if e.status != http.StatusTooManyRequests || strings.Contains(string(e.body), `"too_many_streams"`) {
		return errors.Join(wrong...)
	}
	if l.remaining != 0 {
		complain("X-RateLimit-Remaining: got %d with 429, want 0", l.remaining)
	}
	want := strconv.FormatInt(max(1, int64((left+time.Second-1)/time.Second)), 10)
	if got := e.answered.Get("Retry-After"); got != want {
		complain("Retry-After: got %q, want %s, the whole seconds until Reset", got, want)
	}
	return errors.Join(wrong...)
}
