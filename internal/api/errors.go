package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"animalstore"
	"animalstore/internal/db"
)

// statusOf is where a code becomes an HTTP status.
var statusOf = map[animalstore.Code]int{
	animalstore.MalformedJSON:          http.StatusBadRequest,
	animalstore.ValidationFailed:       http.StatusBadRequest,
	animalstore.InvalidParameter:       http.StatusBadRequest,
	animalstore.InvalidCursor:          http.StatusBadRequest,
	animalstore.MissingAPIKey:          http.StatusUnauthorized,
	animalstore.InvalidAPIKey:          http.StatusUnauthorized,
	animalstore.InsufficientPermission: http.StatusForbidden,
	animalstore.PetNotFound:            http.StatusNotFound,
	animalstore.OrderNotFound:          http.StatusNotFound,
	animalstore.CategoryNotFound:       http.StatusNotFound,
	animalstore.KeyNotFound:            http.StatusNotFound,
	animalstore.RouteNotFound:          http.StatusNotFound,
	animalstore.MethodNotAllowed:       http.StatusMethodNotAllowed,
	animalstore.InvalidTransition:      http.StatusConflict,
	animalstore.PetNotAvailable:        http.StatusConflict,
	animalstore.LastAdminKey:           http.StatusConflict,
	animalstore.EndpointRemoved:        http.StatusGone,
	animalstore.PreconditionFailed:     http.StatusPreconditionFailed,
	animalstore.PayloadTooLarge:        http.StatusRequestEntityTooLarge,
	animalstore.UnsupportedMediaType:   http.StatusUnsupportedMediaType,
	animalstore.IdempotencyKeyReused:   http.StatusUnprocessableEntity,
	animalstore.RateLimitExceeded:      http.StatusTooManyRequests,
	animalstore.DailyQuotaExceeded:     http.StatusTooManyRequests,
	animalstore.KeyBanned:              http.StatusTooManyRequests,
	animalstore.InternalError:          http.StatusInternalServerError,
	animalstore.Unavailable:            http.StatusServiceUnavailable,
	animalstore.StorageFull:            http.StatusServiceUnavailable,
	animalstore.Overloaded:             http.StatusServiceUnavailable,
	animalstore.ShuttingDown:           http.StatusServiceUnavailable,
}

// retryAfter is what a 503 asks a client to wait, in seconds.
const retryAfter = 1

// outward turns any error into the one a caller may see.
func outward(err error) *animalstore.Error {
	var coded *animalstore.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, db.ErrFull):
		return animalstore.Errorf(animalstore.StorageFull, "the store has no room left for changes: reading goes on, try the change again later")
	case errors.Is(err, db.ErrOutcomeUnknown):
		return animalstore.Errorf(animalstore.Unavailable, "the change was sent to the storage, but the answer was lost, so it may have been made or not: retry with the same Idempotency-Key if you sent one, and otherwise look before you try again")
	case errors.Is(err, db.ErrUnavailable):
		return animalstore.Errorf(animalstore.Unavailable, "the storage cannot be reached right now: try again in a moment")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return animalstore.Errorf(animalstore.Overloaded, "the request could not be served in time and nothing was changed: try again in a moment")
	}
	return animalstore.Errorf(animalstore.InternalError, "something went wrong on our side: if it happens again, report it with the X-Request-Id of this answer")
}

// writeError answers with the Error body for err.
func (s *Server) writeError(w http.ResponseWriter, r *request, err error) {
	e := outward(err)
	s.observer.Failed(e.Code)
	status := statusOf[e.Code]
	switch {
	case status == http.StatusInternalServerError:
		s.log.Error("request failed", "request_id", r.id, "method", printable(r.Method), "path", r.URL.Path, "err", err)
	case status == http.StatusServiceUnavailable && r.Request.Context().Err() == nil:
		s.log.Warn("request refused", "request_id", r.id, "method", printable(r.Method), "path", r.URL.Path, "code", e.Code, "err", err)
	}
	h := w.Header()
	switch e.Code {
	case animalstore.MissingAPIKey:
		h["WWW-Authenticate"] = []string{`Bearer realm="animalstore"`}
	case animalstore.InvalidAPIKey:
		h["WWW-Authenticate"] = []string{`Bearer realm="animalstore", error="invalid_token"`}
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	writeJSON(w, status, errorBody{e.Code, e.Message, status})
}

// errorBody is the Error of the interface.
type errorBody struct {
	Code    animalstore.Code `json:"code"`
	Message string           `json:"message"`
	Status  int              `json:"status"`
}

// writeResource answers with a resource or a list of them, tagged.
func writeResource(w http.ResponseWriter, r *request, status int, v any) error {
	return newEntity(encode(v)).write(w, r, status)
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body := encode(v)
	return writeBody(w, status, body, []string{strconv.Itoa(len(body))})
}

// encode is the JSON of v as it is sent. It is made before anything is sent, so
// that no answer fails half way. Our types always encode.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is not HTML, and reads badly
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var contentTypeJSON = []string{"application/json"}

func writeBody(w http.ResponseWriter, status int, body []byte, length []string) error {
	h := w.Header()
	h["Content-Type"] = contentTypeJSON
	h["Content-Length"] = length
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

// printable makes what a client sent fit for a message or a log line.
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

// namedNotFound is a database whose [db.ErrNotFound] says which resource is
// missing. TODO(domain): replace it by the one place that words "not found".
type namedNotFound struct{ db.DB }

func notFound(err error, code animalstore.Code, what string, id int64) error {
	if errors.Is(err, db.ErrNotFound) {
		return animalstore.Errorf(code, "there is no %s with id %d", what, id)
	}
	return err
}

func (d namedNotFound) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	pet, err := d.DB.Pet(ctx, id)
	return pet, notFound(err, animalstore.PetNotFound, "pet", id)
}

func (d namedNotFound) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	pet, err := d.DB.UpdatePet(ctx, id, change)
	return pet, notFound(err, animalstore.PetNotFound, "pet", id)
}

func (d namedNotFound) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	return notFound(d.DB.DeletePet(ctx, id, check), animalstore.PetNotFound, "pet", id)
}

func (d namedNotFound) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, retry *db.Idempotency) (animalstore.Order, bool, error) {
	order, replayed, err := d.DB.PlaceOrder(ctx, petID, at, retry)
	return order, replayed, notFound(err, animalstore.PetNotFound, "pet", petID)
}

func (d namedNotFound) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	order, err := d.DB.Order(ctx, id)
	return order, notFound(err, animalstore.OrderNotFound, "order", id)
}

func (d namedNotFound) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	order, err := d.DB.UpdateOrder(ctx, id, change)
	return order, notFound(err, animalstore.OrderNotFound, "order", id)
}

func (d namedNotFound) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	category, err := d.DB.Category(ctx, id)
	return category, notFound(err, animalstore.CategoryNotFound, "category", id)
}
