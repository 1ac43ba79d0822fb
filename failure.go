package animalstore

import (
	"net/url"
	"slices"
	"time"
)

// Failure is a request that got an error response.
type Failure struct {
	ID         int64   `json:"id"`
	Time       Time    `json:"time"` // of the response
	RequestID  string  `json:"requestId"`
	KeyID      int64   `json:"keyId"`
	Method     string  `json:"method"`
	Route      *string `json:"route"` // pattern of the path, such as "/v1/pets/{petId}"; nil if the path matches none
	Path       *string `json:"path"`  // without the query; nil like Route
	Status     int     `json:"status"`
	Code       Code    `json:"code"`
	Message    string  `json:"message"`
	DurationMs int64   `json:"durationMs"`
}

// FailuresKept is how long failures are kept.
const FailuresKept = 7 * 24 * time.Hour

// FailureQuery selects failures. A field with its zero value matches every failure.
type FailureQuery struct {
	KeyID     int64
	Code      Code
	RequestID string // the X-Request-Id of the response
	Since     Time   // at this time or later
}

// Values returns the parameters of the list.
func (q FailureQuery) Values() url.Values {
	values := url.Values{}
	setID(values, "keyId", q.KeyID)
	set(values, "code", q.Code)
	set(values, "requestId", q.RequestID)
	if !q.Since.IsZero() {
		values.Set("since", q.Since.String())
	}
	return values
}

// ParseFailureQuery is the inverse of [FailureQuery.Values].
func ParseFailureQuery(values url.Values) (FailureQuery, error) {
	p := NewParameters(values)
	q := FailureQuery{KeyID: p.id("keyId"), Since: p.time("since")}
	code, given := p.Text("code")
	if q.Code = Code(code); given && !slices.Contains(Codes, q.Code) {
		p.Fail("code", "must be an error code, such as "+string(ValidationFailed))
	}
	if q.RequestID, given = p.Text("requestId"); given && !ValidRequestID(q.RequestID) {
		p.Fail("requestId", "must be the X-Request-Id of a response: 1 to 64 letters, digits, dots, hyphens and underscores")
	}
	return q, p.Err()
}

// ValidRequestID reports whether id can be the id of a request.
func ValidRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
