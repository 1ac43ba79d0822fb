package main

import (
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestGetUsesTheList: GET on a pet itself is deprecated, and a command line
// that uses it would break in December 2030.
func TestGetUsesTheList(t *testing.T) {
	var asked []string
	server := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			h.ServeHTTP(w, r)
		})
	}))
	if _, err := server.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 7}); err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyVariable, server.Key)
	asked = nil
	root := newCommand()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs([]string{"pets", "get", "1", "--url", server.URL})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, ", "); got != "GET /v1/pets" || out.String() != "1\tRex\t7\tavailable\n" {
		t.Errorf("got the requests %q and the output %q, want GET /v1/pets and Rex", got, out.String())
	}
}

// TestKeyIsNeverShown: no message about a key contains the key.
func TestKeyIsNeverShown(t *testing.T) {
	for _, key := range []string{"", "two words secret", "ast_live_secret", "a-secret-created-elsewhere"} {
		refused := &client.Error{Status: http.StatusUnauthorized, Err: animalstore.Errorf(animalstore.InvalidAPIKey, "the API key isn't valid")}
		text := message((&connection{url: "https://pets.example"}).callError(t.Context(), key, refused))
		if err := checkKey(key); err != nil {
			text += message(err)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("%q: got it in %q", key, text)
		}
	}
}
