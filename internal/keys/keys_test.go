package keys_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/keys"
)

func TestMint(t *testing.T) {
	for env, form := range map[animalstore.Environment]*regexp.Regexp{
		animalstore.Production: regexp.MustCompile(`^ast_live_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$`),
		animalstore.Staging:    regexp.MustCompile(`^ast_test_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$`),
	} {
		seen := map[string]bool{}
		for range 1000 {
			key := keys.Mint(env)
			if !form.MatchString(key) || keys.Environment(key) != env || seen[key] {
				t.Fatalf("%s: got %q, want a new key like %s", env, key, form)
			}
			seen[key] = true
		}
	}
}

// TestKnownKeys fixes the format: a key that was handed out must keep working.
func TestKnownKeys(t *testing.T) {
	for key, want := range map[string]animalstore.Environment{
		"ast_live_0123456789ABCDEFGHIJKLMNOPQRSTUV07FdkB": "production",
		"ast_test_0123456789ABCDEFGHIJKLMNOPQRSTUV3KtiYo": "staging",
		"ast_live_000000000000000000000000000000004aZSDI": "production",
	} {
		if got := keys.Environment(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	hash := keys.Hash("ast_live_0123456789ABCDEFGHIJKLMNOPQRSTUV07FdkB")
	if got, want := hex.EncodeToString(hash[:]), "93b737b6bd51bbb442546f1752a01212d1e47b07d2991891b95c5faf29542ff5"; got != want {
		t.Errorf("hash: got %s, want %s", got, want)
	}
}

// TestChecksum: a key with one wrong character, two swapped neighbours or a missing
// character is refused without a lookup.
func TestChecksum(t *testing.T) {
	key := keys.Mint(animalstore.Production)
	wrong := []string{
		"", "ast_live_", key + "0", " " + key, key + "\n", strings.ToLower(key), "ast_test_" + key[9:],
		"ast_live_000000000000000-00000000000000004fs3Fn", // the checksum is right, but not the characters
	}
	for i := range key {
		for c := byte(' '); c <= '~'; c++ {
			if c != key[i] {
				wrong = append(wrong, key[:i]+string(c)+key[i+1:])
			}
		}
		if i > 0 && key[i] != key[i-1] {
			wrong = append(wrong, key[:i-1]+key[i:i+1]+key[i-1:i]+key[i+1:])
		}
		wrong = append(wrong, key[:i], key[:i]+key[i+1:])
	}
	for _, s := range wrong {
		if got := keys.Environment(s); got != "" {
			t.Errorf("%q instead of %q: got %s, want it refused", s, key, got)
		}
	}
}

func TestValidateForeign(t *testing.T) {
	live, staging := keys.Mint(animalstore.Production), keys.Mint(animalstore.Staging)
	for _, test := range []struct {
		name, secret string
		env          animalstore.Environment
		ok           bool
	}{
		{"ours", live, animalstore.Production, true},
		{"ours for the other deployment", staging, animalstore.Production, false},
		{"ours mistyped", live[:len(live)-1] + "!", animalstore.Production, false},
		{"20 characters", strings.Repeat("x", 20), animalstore.Production, true},
		{"19 characters", strings.Repeat("x", 19), animalstore.Production, false},
		{"200 characters", strings.Repeat("~", 200), animalstore.Staging, true},
		{"201 characters", strings.Repeat("x", 201), animalstore.Production, false},
		{"none", "", animalstore.Production, false},
		{"every visible character", visible(), animalstore.Production, true},
		{"a space", strings.Repeat("x", 20) + " ", animalstore.Production, false},
		{"a line end", strings.Repeat("x", 20) + "\n", animalstore.Production, false},
		{"a delete", strings.Repeat("x", 20) + "\x7f", animalstore.Production, false},
		{"not ASCII", strings.Repeat("ä", 20), animalstore.Production, false},
	} {
		err := keys.ValidateForeign(test.secret, test.env)
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v, want it accepted: %t", test.name, err, test.ok)
		}
		if err != nil && test.secret != "" && strings.Contains(err.Error(), test.secret) {
			t.Errorf("%s: got %v, which gives the secret away", test.name, err)
		}
	}
}

// visible is every visible ASCII character.
func visible() string {
	var b strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}
