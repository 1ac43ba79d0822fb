package api

import (
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"animalstore"
)

// Observer is notified of every request. Requests wait for its methods, so they
// must be quick. They may be called concurrently.
type Observer interface {
	// Begin is called when a request arrives.
	Begin()
	// End is called after the response. pattern is that of the path, such as
	// /v1/pets/{petId}, and "" for an unknown path. Both it and the method come
	// from a fixed set, never from the client.
	End(method, pattern string, status int, took time.Duration)
	// Limited is called with the limiter's decision on a request with a valid key:
	// why it was refused, or "".
	Limited(code animalstore.Code)
	// Failed is called with the code of every error response.
	Failed(code animalstore.Code)
}

// observe reports the end of a request to the observer and the access log.
func (s *Server) observe(w *response, r *request) {
	pattern := r.pattern
	if pattern == "" && underV1(r.URL.Path) { // refused before routing
		if res, _, _ := s.resource(r); res != nil {
			pattern = res.pattern
		}
	}
	status := w.status
	if status == 0 { // nothing was written: net/http sends this
		status = http.StatusOK
	}
	took := time.Since(r.began)
	if underV1(r.URL.Path) {
		s.lastHour.add(s.Now(), status)
	}
	s.Observer.End(knownMethod(r.Method), pattern, status, took-r.waited)
	if s.AccessLog {
		s.logAccess(w, r, took)
	}
}

// knownMethod is the method if it's a common one, or else "other".
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

func (s *Server) logAccess(w *response, r *request, took time.Duration) {
	key, code, client, trace := slog.Attr{}, slog.Attr{}, slog.Attr{}, slog.Attr{} // empty ones are omitted
	if r.failed != "" {
		code = slog.String("code", string(r.failed))
	}
	if id := traceID(r.Request); id != "" {
		trace = slog.String("trace_id", id)
	}
	if addr := s.clientAddr(r.Request); addr.IsValid() {
		client = slog.String("client", addr.String())
	}
	if r.keyID != 0 {
		key = slog.Int64("key_id", r.keyID)
	}
	s.Log.Info("request", "request_id", r.id, client, "method", printable(r.Method), "path", r.URL.Path,
		"status", w.status, code, "bytes", w.bytes, "took_ms", float64(took.Microseconds())/1000, key, trace)
}

// traceParent is the traceparent header of W3C Trace Context. Later versions may append
// fields.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)`)

// traceID returns the id of the trace that a request belongs to, or "".
func traceID(r *http.Request) string {
	if match := traceParent.FindStringSubmatch(r.Header.Get("Traceparent")); match != nil {
		return match[1]
	}
	return ""
}
