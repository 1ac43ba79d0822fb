package api

import (
	"net/http"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// listFailures serves GET /v1/failures. Any key may see its own failures.
func (s *Server) listFailures(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/failures", r.URL.RawQuery, "keyId", "code", "requestId", "since")
	if err != nil {
		return err
	}
	query := db.FailureQuery{Limit: q.limit + 1}
	if query.KeyID, err = idFilter(q, "keyId"); err != nil {
		return err
	}
	if query.KeyID, err = visibleKey(r.key, query.KeyID); err != nil {
		return err
	}
	if query.Code, query.RequestID, query.Since, err = failureFilters(q); err != nil {
		return err
	}
	if query.Before, err = q.positiveID(); err != nil {
		return err
	}
	failures, err := s.db.Failures(r.Context(), query)
	if err != nil {
		return err
	}
	return writePage(w, r, q, failures, func(f *animalstore.Failure) int64 { return f.ID })
}

// visibleKey returns the key whose failures to list if a key asks for those of another: 0
// stands for all that it may see.
func visibleKey(key *animalstore.Key, asked int64) (int64, error) {
	switch {
	case key.Permissions.Has(animalstore.Admin):
		return asked, nil
	case asked != 0 && asked != key.ID:
		return 0, animalstore.Errorf(animalstore.InsufficientPermission, "the failed requests of another key need a key with the permission %s; yours has %s", animalstore.Admin, key.Permissions)
	}
	return key.ID, nil
}

// failureFilters reads the filters of a list of failures, other than the key.
func failureFilters(q *listQuery) (code animalstore.Code, requestID string, since animalstore.Time, err error) {
	if text, ok := q.filters["code"]; ok {
		if code = animalstore.Code(text); !slices.Contains(animalstore.Codes, code) {
			return "", "", since, q.invalidFilter("code", "must be an error code, such as "+string(animalstore.ValidationFailed))
		}
	}
	if text, ok := q.filters["requestId"]; ok {
		if requestID = text; !validRequestID(text) {
			return "", "", since, q.invalidFilter("requestId", "must be the X-Request-Id of a response: 1 to 64 letters, digits, dots, hyphens and underscores")
		}
	}
	if text, ok := q.filters["since"]; ok {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.UnixMilli() < 1 {
			return "", "", since, q.invalidFilter("since", "must be a time like 2026-11-15T10:00:00Z")
		}
		since = animalstore.At(at)
	}
	return code, requestID, since, nil
}
