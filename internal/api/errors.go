package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"animalstore"
	"animalstore/internal/db"
)

// retryAfter is how long a 503 asks its client to wait, in seconds.
const retryAfter = 1

// publicError turns any error into one that callers may see.
func publicError(err error) *animalstore.Error {
	var coded *animalstore.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, db.ErrFull):
		return animalstore.Errorf(animalstore.StorageFull, "storage is full: reads work, writes fail; retry later")
	case errors.Is(err, db.ErrOutcomeUnknown):
		return animalstore.Errorf(animalstore.Unavailable, "the change may or may not have been made: retry with the same Idempotency-Key, or check first if you sent none")
	case errors.Is(err, db.ErrUnavailable):
		return animalstore.Errorf(animalstore.Unavailable, "storage is unavailable: retry in a moment")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return animalstore.Errorf(animalstore.Overloaded, "the server is overloaded and changed nothing: retry in a moment")
	}
	return animalstore.Errorf(animalstore.InternalError, "internal server error: if it persists, report it with this response's X-Request-Id")
}

// writeError writes the error body for err.
func (s *Server) writeError(w http.ResponseWriter, r *request, err error) {
	e := publicError(err)
	message := e.Message
	if e.Code == animalstore.InternalError && r.changes {
		message += "; the change may or may not have been made: check before you retry"
	}
	r.failed = e.Code
	s.Observer.Failed(e.Code)
	s.recordFailure(r, e.Code, message, err)
	status := e.Code.Status()
	switch {
	case status == http.StatusInternalServerError:
		s.Log.Error("request failed", "request_id", r.id, "method", printable(r.Method), "path", r.URL.Path, "err", err)
	case e.Code == animalstore.ShuttingDown: // a health check while draining: expected
	case status != http.StatusServiceUnavailable || r.Request.Context().Err() != nil:
	case !errors.Is(err, db.ErrFull) || s.fullLog.due(s.Now()):
		s.Log.Warn("request refused", "request_id", r.id, "method", printable(r.Method), "path", r.URL.Path, "code", e.Code, "err", err)
	}
	h := w.Header()
	switch e.Code {
	case animalstore.MissingAPIKey:
		h["WWW-Authenticate"] = []string{`Bearer realm="animalstore"`}
	case animalstore.InvalidAPIKey:
		h["WWW-Authenticate"] = []string{`Bearer realm="animalstore", error="invalid_token"`}
	case animalstore.UnsupportedMediaType:
		setAccepted(h, r)
	}
	if status == http.StatusServiceUnavailable {
		setHeader(w, "Retry-After", strconv.Itoa(retryAfter))
	}
	writeJSON(w, status, errorBody{e.Code, message, status})
}

// fullLogEvery is how often a full disk is logged: the log may be on the same disk.
const fullLogEvery = time.Minute

// fullLog says which of the requests that fail because the disk is full are logged.
type fullLog struct{ last atomic.Int64 } // in Unix time

func (l *fullLog) due(now time.Time) bool {
	last := l.last.Load()
	since := now.Sub(time.Unix(last, 0))
	return (since >= fullLogEvery || since < 0) && l.last.CompareAndSwap(last, now.Unix())
}

// errorBody is the body of every error response.
type errorBody struct {
	Code    animalstore.Code `json:"code"`
	Message string           `json:"message"`
	Status  int              `json:"status"`
}

// printable makes text from a client safe for a message or a log line.
func printable(s string) string {
	if len(s) > 32 {
		s = s[:32] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
