package api

import (
	"net/http"
	"net/url"
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
	key, err := atPath(r, &keyKind, s.db.Key)
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
	since := s.now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := s.Usage.Read(r.Context(), s.db.Usage, keyID, animalstore.At(since))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeResource(w, r, http.StatusOK, usage)
}

// parseHours reads how many hours to report, the current one included.
func parseHours(rawQuery string) (int, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return 0, malformedQuery()
	}
	if !values.Has("hours") {
		return defaultUsageHours, nil
	}
	n, ok := parseInt64(values.Get("hours"))
	if !ok || len(values["hours"]) > 1 || n < 1 || n > maxUsageHours {
		return 0, animalstore.Errorf(animalstore.InvalidParameter, "hours must be an integer from 1 to %d, given once", maxUsageHours)
	}
	return int(n), nil
}
