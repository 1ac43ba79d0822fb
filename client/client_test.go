package client_test

import (
	"net/http"
	"strings"
	"testing"

	"animalstore/client"
)

// TestNew: New accepts valid base URLs and keys and uses the right URLs, and rejects
// the rest.
func TestNew(t *testing.T) {
	good := map[string]string{
		"http://127.0.0.1:8080":             "http://127.0.0.1:8080/v1",
		"http://127.0.0.1:8080/":            "http://127.0.0.1:8080/v1",
		"http://127.0.0.1:8080/v1":          "http://127.0.0.1:8080/v1",
		"https://pets.example/v1/":          "https://pets.example/v1",
		"https://pets.example/v1//":         "https://pets.example/v1",
		"https://example.com/pets":          "https://example.com/pets/v1",
		"https://example.com/pets/v1":       "https://example.com/pets/v1",
		"http://[::1]:8080/v1":              "http://[::1]:8080/v1",
		"https://example.com/with%20blank/": "https://example.com/with%20blank/v1",
	}
	for base, want := range good {
		s := &scripted{responses: []reply{response(200, "["+petJSON+"]")}}
		c, err := client.New(base, secret, client.WithHTTPClient(&http.Client{Transport: s}))
		if err != nil {
			t.Errorf("%s: got %v, want a client", base, err)
			continue
		}
		if c.BaseURL() != want {
			t.Errorf("%s: got %s, want %s", base, c.BaseURL(), want)
		}
		if _, err := c.FindPet(t.Context(), 1); err != nil || s.sent[0].URL.String() != want+"/pets?id=1&limit=100" {
			t.Errorf("%s: got a request of %s (%v), want one under %s", base, s.sent[0].URL, err, want)
		}
		if got := s.sent[0].Header.Get("Authorization"); got != "Bearer "+secret {
			t.Errorf("got Authorization %q, want the key", got)
		}
	}
	bad := map[string][2]string{ // address, key
		"no scheme":         {"127.0.0.1:8080", secret},
		"another scheme":    {"ftp://pets.example", secret},
		"nothing":           {"", secret},
		"a path":            {"/v1", secret},
		"a password":        {"http://user:hush@pets.example", secret},
		"a broken password": {"http://user:hush%zz@pets.example", secret},
		"a query":           {"http://pets.example/v1?key=hush", secret},
		"a fragment":        {"http://pets.example/v1#hush", secret},
		"no host":           {"http:///v1", secret},
		"no key":            {"http://pets.example", ""},
		"a line break":      {"http://pets.example", "hush\n"},
		"a blank":           {"http://pets.example", "hush hush"},
		"not ASCII":         {"http://pets.example", "hüsh hush"},
	}
	for name, args := range bad {
		_, err := client.New(args[0], args[1])
		if err == nil {
			t.Errorf("%s: got a client, want an error", name)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %q, want nothing secret in it", name, err)
		}
	}
	options := map[string]client.Option{
		"no attempt":        client.WithMaxAttempts(0),
		"backoff of none":   client.WithBackoff(0, 1),
		"backoff backwards": client.WithBackoff(2, 1),
		"no time":           client.WithAttemptTimeout(0),
		"a wait below zero": client.WithMaxWait(-1),
		"a broken agent":    client.WithUserAgent("a\r\nb: c"),
	}
	for name, option := range options {
		if _, err := client.New("http://pets.example", secret, option); err == nil {
			t.Errorf("%s: got a client, want an error", name)
		}
	}
}
