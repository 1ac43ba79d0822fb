package api

import (
	"context"
	"net/http"

	"animalstore"
	"animalstore/internal/db"
)

// listFailures serves GET /v1/failures. Any key may see its own failures.
func (s *Server) listFailures(w http.ResponseWriter, r *request) error {
	list := func(ctx context.Context, q animalstore.FailureQuery, page db.Page) (_ []animalstore.Failure, err error) {
		if q.KeyID, err = visibleKey(r.key, q.KeyID); err != nil {
			return nil, err
		}
		return s.DB.Failures(ctx, q, page)
	}
	return serveList(w, r, "/v1/failures", animalstore.ParseFailureQuery, list, func(f *animalstore.Failure) int64 { return f.ID })
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
