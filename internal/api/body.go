package api

import (
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

// maxBody is the maximum size of a request body, in bytes.
const maxBody = 1 << 20

const (
	typeJSON       = "application/json"
	typeMergePatch = "application/merge-patch+json"
)

// decode reads the body with one of the functions of package strictjson, and validates it.
// It is for types whose Validate needs nothing else; for the others, see decodeUnchecked.
func decode[T any, P validated[T]](r *request, parse func([]byte) (T, error)) (value T, err error) {
	if value, err = decodeUnchecked(r, parse); err != nil {
		return value, err
	}
	return value, P(&value).Validate()
}

// validated is a pointer to a T that can be validated.
type validated[T any] interface {
	*T
	Validate() error
}

// decodeUnchecked is decode for a type that its handler validates.
func decodeUnchecked[T any](r *request, parse func([]byte) (T, error)) (value T, err error) {
	body, err := readBody(r)
	if err != nil {
		return value, err
	}
	if err := checkMediaType(r); err != nil {
		return value, err
	}
	return parse(body)
}

// decodeOptional is decode for an operation that works without a body. Without
// one, the media type doesn't matter and the result is the zero value.
func decodeOptional[T any](r *request, parse func([]byte) (T, error)) (value T, err error) {
	body, err := readBody(r)
	if err != nil || len(body) == 0 {
		return value, err
	}
	if err := checkMediaType(r); err != nil {
		return value, err
	}
	return parse(body)
}

func readBody(r *request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, unreadable(err, animalstore.MalformedJSON)
	}
	if len(body) > maxBody {
		return nil, tooLarge()
	}
	if len(body) > 0 {
		// The http.Server limits how long reading a body may take, so our own timeout
		// only starts here.
		r.restartClock()
	}
	r.body = body
	return body, nil
}

// unreadable says why a body could not be read. The code says what the body should be.
func unreadable(err error, code animalstore.Code) error {
	var network net.Error
	reason := "the body ended early or isn't in valid chunks: send all of it, as Content-Length or Transfer-Encoding says"
	if errors.As(err, &network) && network.Timeout() {
		reason = "the body did not arrive in time: send all of it right after the header"
	}
	return animalstore.Errorf(code, "%s", reason)
}

func tooLarge() error {
	return animalstore.Errorf(animalstore.PayloadTooLarge, "the body must have at most %d bytes", maxBody)
}

// What 415 responses say is accepted.
var (
	acceptPatch  = []string{typeJSON + ", " + typeMergePatch}
	acceptCoding = []string{"identity"}
)

// setAccepted tells the client of a 415 what to send instead.
func setAccepted(h http.Header, r *request) {
	if r.Method == http.MethodPatch {
		h["Accept-Patch"] = acceptPatch
	}
	if isCoded(r.Header) {
		h["Accept-Encoding"] = acceptCoding
	}
}

// isCoded reports whether the body is compressed or otherwise encoded.
func isCoded(h http.Header) bool {
	for _, codings := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(codings, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}

// checkMediaType checks that the Content-Type is absent or JSON, or for PATCH a JSON merge
// patch, and that the body isn't compressed.
func checkMediaType(r *request) error {
	if isCoded(r.Header) {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "Content-Encoding is not supported: send uncompressed JSON")
	}
	types := r.Header["Content-Type"]
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return nil
	}
	accepted := []string{typeJSON}
	if r.Method == http.MethodPatch {
		accepted = append(accepted, typeMergePatch)
	}
	mediaType, _, err := mime.ParseMediaType(types[0])
	if len(types) > 1 || err != nil || !slices.Contains(accepted, mediaType) {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "the body must be JSON: send it with Content-Type: %s", strings.Join(accepted, " or "))
	}
	return nil
}

// idempotency returns what the Idempotency-Key of a request asks for, or nil if
// there is none. The body must have been read.
func (s *Server) idempotency(r *request, operation string) (*db.Idempotency, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return nil, nil
	}
	token := values[0]
	invisible := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(values) > 1 || len(token) < 1 || len(token) > 255 || strings.ContainsFunc(token, invisible) {
		return nil, animalstore.Errorf(animalstore.InvalidParameter, "Idempotency-Key must be given once, with 1 to 255 visible ASCII characters and no spaces")
	}
	return &db.Idempotency{
		KeyID:     r.key.ID,
		Operation: operation,
		Token:     token,
		BodyHash:  sha256.Sum256(r.body),
		At:        animalstore.At(s.Now()),
	}, nil
}

// setReplayed marks a response that repeats the stored result of an earlier request.
func setReplayed(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}
