package api

import (
	"net/http"
	"slices"
	"strings"
)

// exposed are the response headers that pages of an allowed origin may read.
var exposed = strings.Join([]string{
	"Accept-Encoding", "Accept-Patch", "Age", "Allow", "Ban-Lifted", "Content-Disposition", "Content-Security-Policy", "Date", "Deprecation", "ETag", "Idempotent-Replayed", "Link", "Location", "Retry-After", "Sunset", "WWW-Authenticate",
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id",
}, ", ")

// handlePreflight sets the CORS headers for a request from an allowed origin. If
// the request is a preflight, it writes the response and returns true. Preflights
// have no credential, so this comes before every other check.
func (s *Server) handlePreflight(w http.ResponseWriter, r *request) bool {
	if len(s.CORSOrigins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.CORSOrigins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", exposed)
		return false
	}
	setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
