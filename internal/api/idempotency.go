package api

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

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
		KeyID:    r.key.ID,
		Route:    operation,
		Token:    token,
		BodyHash: sha256.Sum256(r.body),
		At:       animalstore.At(s.now()),
	}, nil
}

// setReplayed marks a response that was already sent to an earlier request.
func setReplayed(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}
