package main

import (
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client"
)

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

// TestShellWord: a printed command can be pasted into a shell.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/opt/shop/pets.csv": "/opt/shop/pets.csv",
		"Zoë's pets":         `'Zoë'\''s pets'`,
		`a\b`:                `'a\b'`,
	} {
		if got := shellWord(word); got != want {
			t.Errorf("got %s for %s, want %s", got, word, want)
		}
	}
}
