package api

import (
	"net/http"
	"strings"

	"animalstore"
)

// authenticate sets the key of a request. A request without a valid one is
// charged to the address it comes from.
func (s *Server) authenticate(w *response, r *request) error {
	token, err := bearerToken(r.Header)
	if err == nil {
		r.key, err = s.keys.Check(r.Context(), token)
	}
	if err == nil {
		return nil
	}
	if statusOf[publicError(err).Code] != http.StatusUnauthorized {
		// The key may be valid, so nothing is charged.
		setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
		return err
	}
	d := s.anonymous.Take(s.clientAddr(r.Request))
	setLimitHeaders(w, d)
	if !d.Allowed {
		return animalstore.Errorf(d.Code, "too many requests without a valid API key from your address: wait %d s, then send a valid key", d.RetryAfter)
	}
	return err
}

// bearerToken returns the token of the Authorization header.
func bearerToken(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) > 1 {
		return "", animalstore.Errorf(animalstore.InvalidAPIKey, "more than one Authorization header was sent: send one")
	}
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(values[0], " ")
		token = strings.Trim(token, " ")
		if strings.EqualFold(scheme, "Bearer") && token != "" {
			return token, nil
		}
	}
	return "", animalstore.Errorf(animalstore.MissingAPIKey, "an API key is needed: send it as the header Authorization: Bearer <API_KEY>")
}
