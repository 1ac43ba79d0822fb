package api

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"animalstore"
)

const (
	defaultUsageHours = 24
	maxUsageHours     = int(animalstore.UsageKept / time.Hour)
)

// getUsage serves GET /v1/usage: that of the key it is asked with.
func (s *Server) getUsage(w http.ResponseWriter, r *request) error {
	return s.writeUsage(w, r, r.key.ID)
}

// getKeyUsage serves GET /v1/keys/{keyId}/usage.
func (s *Server) getKeyUsage(w http.ResponseWriter, r *request) error {
	if _, err := parseHours(r.URL.RawQuery); err != nil {
		return err // before a 404
	}
	id, err := keyID(r)
	if err != nil {
		return err
	}
	if _, err := s.db.Key(r.Context(), id); err != nil {
		return keyNotFound(err, id)
	}
	return s.writeUsage(w, r, id)
}

func (s *Server) writeUsage(w http.ResponseWriter, r *request, keyID int64) error {
	hours, err := parseHours(r.URL.RawQuery)
	if err != nil {
		return err
	}
	// What this server still has in memory belongs to the answer. If it cannot be
	// saved just now, as on a full disk, what was saved is better than nothing.
	_ = s.usage.Save(r.Context())
	since := s.now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := s.db.Usage(r.Context(), keyID, animalstore.At(since))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeResource(w, r, http.StatusOK, usage)
}

// parseHours reads how many hours to look back, the one under way included.
func parseHours(rawQuery string) (int, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return 0, malformedQuery()
	}
	if !values.Has("hours") {
		return defaultUsageHours, nil
	}
	text := values.Get("hours")
	n, err := strconv.Atoi(text)
	if err != nil || len(values["hours"]) > 1 || n < 1 || n > maxUsageHours || strconv.Itoa(n) != text {
		return 0, animalstore.Errorf(animalstore.InvalidParameter, "hours must be an integer from 1 to %d, given once", maxUsageHours)
	}
	return n, nil
}
