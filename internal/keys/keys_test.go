package keys_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/keys"
)

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func TestMint(t *testing.T) {
	for env, form := range map[animalstore.Environment]*regexp.Regexp{
		animalstore.Production: regexp.MustCompile(`^ast_live_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$`),
		animalstore.Staging:    regexp.MustCompile(`^ast_test_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$`),
	} {
		seen := map[string]bool{}
		used := map[rune]int{}
		for range 4000 {
			key := keys.Mint(env)
			if !form.MatchString(key) {
				t.Fatalf("%s: got %q, want %s", env, key, form)
			}
			if got := keys.Environment(key); got != env {
				t.Fatalf("%s: got a key of %q, want %[1]s", env, got)
			}
			random := key[9:41]
			if seen[random] {
				t.Fatalf("%s: got %q twice", env, random)
			}
			seen[random] = true
			for _, c := range random {
				used[c]++
			}
		}
		// 128,000 characters, 2,065 of each if they are equally likely. The limits
		// are six standard deviations away.
		for _, c := range alphabet {
			if n := used[c]; n < 1795 || n > 2335 {
				t.Errorf("%s: got %q %d times in 128000, want about 2065", env, c, n)
			}
		}
	}
}

func TestMintWithoutEnvironment(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("got a key for no environment, want a panic")
		}
	}()
	keys.Mint("")
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

// TestChecksum: a key with one wrong character, two swapped neighbours or missing
// characters is refused without a lookup.
func TestChecksum(t *testing.T) {
	for _, env := range []animalstore.Environment{animalstore.Production, animalstore.Staging} {
		key := keys.Mint(env)
		for i := range key {
			for c := byte(' '); c <= '~'; c++ {
				if changed := key[:i] + string(c) + key[i+1:]; c != key[i] && keys.Environment(changed) != "" {
					t.Errorf("character %d changed to %q: got %s accepted, want it refused", i, c, changed)
				}
			}
			if i > 0 && key[i] != key[i-1] {
				if swapped := key[:i-1] + key[i:i+1] + key[i-1:i] + key[i+1:]; keys.Environment(swapped) != "" {
					t.Errorf("characters %d and %d swapped: got %s accepted, want it refused", i-1, i, swapped)
				}
			}
			if cut := key[:i]; keys.Environment(cut) != "" {
				t.Errorf("cut off: got %s accepted, want it refused", cut)
			}
			if without := key[:i] + key[i+1:]; keys.Environment(without) != "" {
				t.Errorf("without character %d: got %s accepted, want it refused", i, without)
			}
		}
	}
}

func TestEnvironmentOfInvalidKeys(t *testing.T) {
	good := keys.Mint(animalstore.Production)
	for _, s := range []string{
		"", "ast_", "ast_live_", "ast_test_", good + "0", " " + good, good + " ", good + "\n",
		strings.ToLower(good), strings.ToUpper(good), "ast_test_" + good[9:], "AST_live_" + good[9:],
		"ast_live_000000000000000-00000000000000004fs3Fn", // the checksum is right, but not the characters
		"a-secret-made-elsewhere", strings.Repeat("\xff", 47),
	} {
		if got := keys.Environment(s); got != "" {
			t.Errorf("%q: got %q, want none", s, got)
		}
	}
}

func TestValidateForeign(t *testing.T) {
	live, staging := keys.Mint(animalstore.Production), keys.Mint(animalstore.Staging)
	tests := []struct {
		name, secret string
		env          animalstore.Environment
		want         string // in the message; "" if accepted
	}{
		{"ours", live, animalstore.Production, ""},
		{"ours for the other deployment", staging, animalstore.Production, "staging"},
		{"ours mistyped", live[:len(live)-1] + "!", animalstore.Production, "checksum"},
		{"20 characters", strings.Repeat("x", 20), animalstore.Production, ""},
		{"19 characters", strings.Repeat("x", 19), animalstore.Production, "20 to 200"},
		{"200 characters", strings.Repeat("~", 200), animalstore.Staging, ""},
		{"201 characters", strings.Repeat("x", 201), animalstore.Production, "20 to 200"},
		{"none", "", animalstore.Production, "20 to 200"},
		{"every visible character", visible(), animalstore.Production, ""},
		{"a space", strings.Repeat("x", 20) + " ", animalstore.Production, "visible ASCII"},
		{"a line end", strings.Repeat("x", 20) + "\n", animalstore.Production, "visible ASCII"},
		{"a delete", strings.Repeat("x", 20) + "\x7f", animalstore.Production, "visible ASCII"},
		{"not ASCII", strings.Repeat("ä", 20), animalstore.Production, "visible ASCII"},
		{"not UTF-8", strings.Repeat("\xff", 20), animalstore.Production, "visible ASCII"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := keys.ValidateForeign(test.secret, test.env)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want it accepted", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			case err != nil && test.secret != "" && strings.Contains(err.Error(), test.secret):
				t.Errorf("got %v, which gives the secret away", err)
			}
		})
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
