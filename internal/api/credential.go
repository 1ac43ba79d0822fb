package api

import (
	"net/http"
	"strings"

	"animalstore"
)

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
