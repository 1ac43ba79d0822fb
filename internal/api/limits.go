package api

import (
	"net/http"
	"strconv"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// limit charges a request to its key, or returns an error if a limit is reached.
func (s *Server) limit(w http.ResponseWriter, r *request) error {
	d, err := s.Limiter.Take(r.Context(), r.key)
	if err != nil {
		setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
		return err
	}
	s.Usage.Record(r.key.ID, d.Allowed)
	s.Observer.Limited(d.Code)
	setLimitHeaders(w, d)
	if d.BannedNow {
		s.Log.Warn("key banned for ignoring 429 responses", "key_id", r.key.ID, "until", time.Unix(d.Reset, 0).UTC())
	}
	if d.Allowed {
		return nil
	}
	if d.Code == animalstore.KeyBanned {
		s.followers.endKey(r.key.ID)
	}
	return limitError(d)
}

// limitError says which limit was reached and how long to wait.
func limitError(d ratelimit.Decision) error {
	switch d.Code {
	case animalstore.KeyBanned:
		return animalstore.Errorf(d.Code, "key banned for ignoring 429 responses: retry in %d s, and respect Retry-After", d.RetryAfter)
	case animalstore.DailyQuotaExceeded:
		return animalstore.Errorf(d.Code, "limit of %d requests per day (UTC) reached: retry in %d s or ask for a larger plan", d.Limit, d.RetryAfter)
	}
	return animalstore.Errorf(d.Code, "limit of %d requests per minute reached: retry in %d s", d.Limit, d.RetryAfter)
}

// addressError is limitError for requests that are charged to an address.
func addressError(d ratelimit.Decision) error {
	return animalstore.Errorf(d.Code, "too many requests from your address: retry in %d s", d.RetryAfter)
}

// These are spelled as in the interface. Header.Set would change the spelling.
const (
	limitHeader     = "X-RateLimit-Limit"
	remainingHeader = "X-RateLimit-Remaining"
	resetHeader     = "X-RateLimit-Reset"
)

// setLimitHeaders reports the caller's remaining quota.
func setLimitHeaders(w http.ResponseWriter, d ratelimit.Decision) {
	setHeader(w, limitHeader, strconv.FormatInt(d.Limit, 10))
	setHeader(w, remainingHeader, strconv.FormatInt(d.Remaining, 10))
	setHeader(w, resetHeader, strconv.FormatInt(d.Reset, 10))
	if d.RetryAfter > 0 {
		setHeader(w, "Retry-After", strconv.FormatInt(d.RetryAfter, 10))
	}
}

// getLimits serves GET /v1/limits. It's charged like any other request, and what
// it reports includes itself.
func (s *Server) getLimits(w http.ResponseWriter, r *request) error {
	st, err := s.Limiter.Status(r.Context(), r.key)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeResource(w, r, http.StatusOK, animalstore.LimitStatus{
		Plan:        r.key.Plan,
		Permissions: r.key.Permissions,
		Minute:      animalstore.LimitWindow(st.Minute),
		Day:         animalstore.LimitWindow(st.Day),
		Strikes:     animalstore.LimitStrikes{Count: st.Strikes, Threshold: st.Threshold},
		Ban:         animalstore.LimitBan{Active: !st.BannedUntil.IsZero(), Until: st.BannedUntil, Level: st.BanLevel},
	})
}
