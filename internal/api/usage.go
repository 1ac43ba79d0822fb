package api

import (
	"net/http"
	"time"

	"animalstore"
)

const (
	defaultUsageHours = 24
	maxUsageHours     = int64(animalstore.UsageKept / time.Hour)
)

// getUsage serves GET /v1/usage: the usage of the caller's own key.
func (s *Server) getUsage(w http.ResponseWriter, r *request) error {
	return s.writeUsage(w, r, r.key.ID)
}

// getKeyUsage serves GET /v1/keys/{keyId}/usage.
func (s *Server) getKeyUsage(w http.ResponseWriter, r *request) error {
	if _, err := parseHours(r.URL.RawQuery); err != nil {
		return err // before a 404
	}
	key, err := atPath(r, &keyKind, s.DB.Key)
	if err != nil {
		return err
	}
	return s.writeUsage(w, r, key.ID)
}

func (s *Server) writeUsage(w http.ResponseWriter, r *request, keyID int64) error {
	hours, err := parseHours(r.URL.RawQuery)
	if err != nil {
		return err
	}
	since := s.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := s.Usage.Read(r.Context(), s.DB.Usage, keyID, animalstore.At(since))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeResource(w, r, http.StatusOK, usage)
}

// parseHours reads how many hours to report, the current one included.
func parseHours(rawQuery string) (int, error) {
	values, err := parseParams(rawQuery)
	if err != nil {
		return 0, err
	}
	p := animalstore.NewParameters(values)
	hours := p.Integer("hours", 1, maxUsageHours, defaultUsageHours)
	return int(hours), p.Err()
}
