package console

import (
	"net/url"
	"strings"
	"time"

	"animalstore"
)

type failuresPage struct {
	frame
	page[animalstore.Failure]
	Codes     []animalstore.Code // to choose from
	Days      []string           // to choose from, in UTC
	Code      string
	Since     string
	KeyID     string
	RequestID string
	Problem   formError // of the filters
}

// listFailures serves GET /console/failures: the requests that failed, of the key that is
// signed in or, with admin, of all keys.
func (v *visit) listFailures() error {
	query := v.r.URL.Query()
	failures, err := v.findFailures(query)
	wrong, err := filterProblem(err)
	if err != nil {
		return err
	}
	p := failuresPage{frame: v.frame("Failed requests"), page: failures, Codes: keptCodes, Problem: wrong}
	p.Code, p.Since, p.KeyID, p.RequestID = query.Get("code"), query.Get("since"), query.Get("key"), strings.TrimSpace(query.Get("request"))
	for day := v.c.Now().UTC(); len(p.Days) <= int(animalstore.FailuresKept/(24*time.Hour)); day = day.AddDate(0, 0, -1) {
		p.Days = append(p.Days, day.Format(time.DateOnly))
	}
	return v.render(wrong.status(), "failures", p)
}

// keptCodes are the codes that a failed request can have: requests without a valid key, or
// whose key may not be used, aren't kept, nor failures of a database that is gone.
var keptCodes = func() (codes []animalstore.Code) {
	for _, code := range animalstore.Codes {
		switch code {
		case animalstore.MissingAPIKey, animalstore.InvalidAPIKey, animalstore.KeySuspended, animalstore.AddressNotAllowed, animalstore.Unavailable:
		default:
			codes = append(codes, code)
		}
	}
	return codes
}()

func (v *visit) findFailures(query url.Values) (p page[animalstore.Failure], err error) {
	q := animalstore.FailureQuery{Code: animalstore.Code(query.Get("code")), RequestID: strings.TrimSpace(query.Get("request"))}
	if q.KeyID, err = idFilter(query, "key"); err != nil {
		return p, err
	}
	if q.Since, err = sinceTime(query.Get("since")); err != nil {
		return p, err
	}
	p, err = readPage(v, matching(v.api.ListFailures, q), pageSize)
	if codeOf(err) == animalstore.InvalidParameter && q.RequestID != "" {
		return p, badField("request", "a request id has 1 to 64 letters, digits, dots, hyphens and underscores")
	}
	return p, err
}

// codeGuide is the address of what the guide says about an error code.
func codeGuide(code animalstore.Code) string {
	return "/docs/guides/callers#" + strings.ReplaceAll(string(code), "_", "-")
}
