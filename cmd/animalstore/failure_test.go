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

// TestShellWord: a printed command can be pasted into the shells of the system.
func TestShellWord(t *testing.T) {
	for _, test := range []struct{ goos, word, want, program string }{
		{"linux", "/opt/shop/pets.csv", "/opt/shop/pets.csv", "/opt/shop/pets.csv"},
		{"linux", "Zoë's pets", `'Zoë'\''s pets'`, `'Zoë'\''s pets'`},
		{"linux", `a\b`, `'a\b'`, `'a\b'`},
		{"windows", `C:\shop\pets.csv`, `C:\shop\pets.csv`, `C:\shop\pets.csv`},
		{"windows", `C:\Program Files\shop\animalstore.exe`, `"C:\Program Files\shop\animalstore.exe"`, "animalstore.exe"},
		{"windows", `..\my shop/animalstore`, `"..\my shop/animalstore"`, "animalstore"},
		{"windows", "Zoë's pets.csv", `"Zoë's pets.csv"`, `"Zoë's pets.csv"`},
	} {
		if got := shellWord(test.goos, test.word); got != test.want {
			t.Errorf("%s: got %s for %s, want %s", test.goos, got, test.word, test.want)
		}
		if got := shellProgram(test.goos, test.word); got != test.program {
			t.Errorf("%s: got the program %s for %s, want %s", test.goos, got, test.word, test.program)
		}
	}
}
