package client_test

import (
	"testing"

	"animalstore/client"
)

// TestBaseURL: BaseURL is the URL of the API, with the version. Scenarios test what New
// refuses, and where requests go.
func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:8080":             "http://127.0.0.1:8080/v1",
		"https://pets.example/v1//":         "https://pets.example/v1",
		"https://example.com/pets":          "https://example.com/pets/v1",
		"http://[::1]:8080/v1":              "http://[::1]:8080/v1",
		"https://example.com/with%20blank/": "https://example.com/with%20blank/v1",
	} {
		c, err := client.New(base, secret)
		if err != nil {
			t.Errorf("%s: got %v, want a client", base, err)
		} else if c.BaseURL() != want {
			t.Errorf("%s: got %s, want %s", base, c.BaseURL(), want)
		}
	}
}
