// Package keys makes API keys and tells good ones from bad.
//
// A key's secret looks like ast_live_<32 characters><6 characters>: a prefix
// that names the deployment and that secret scanners recognise, 190 bits of
// chance, and a checksum by which a mistyped key is refused without asking the
// database. Only the SHA-256 of the whole is ever stored.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"animalstore"
)

const (
	brand       = "ast_" // what every key made here starts with
	randomLen   = 32
	checksumLen = 6
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

var prefixes = map[animalstore.Environment]string{
	animalstore.Production: "ast_live_",
	animalstore.Staging:    "ast_test_",
}

// Mint makes a new secret for a deployment.
func Mint(env animalstore.Environment) string {
	prefix, ok := prefixes[env]
	if !ok {
		panic("keys: no prefix for environment " + string(env))
	}
	secret := make([]byte, 0, len(prefix)+randomLen+checksumLen)
	secret = append(secret, prefix...)
	for random := make([]byte, 64); len(secret) < len(prefix)+randomLen; {
		rand.Read(random)
		for _, b := range random {
			// 248 is the last multiple of 62 in a byte: below it every
			// character is equally likely.
			if b < 248 && len(secret) < len(prefix)+randomLen {
				secret = append(secret, base62[b%62])
			}
		}
	}
	return string(secret) + checksum(string(secret))
}

// Hash is what is stored of a secret.
func Hash(secret string) [32]byte {
	// Every request comes by here, and converting the string would allocate.
	var room [maxForeign]byte
	return sha256.Sum256(append(room[:0], secret...))
}

func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var out [checksumLen]byte
	for i := checksumLen - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// Environment tells which deployment a secret of ours was minted for. It is ""
// for one that was mistyped, cut off or never ours.
func Environment(secret string) animalstore.Environment {
	for env, prefix := range prefixes {
		if !strings.HasPrefix(secret, prefix) || len(secret) != len(prefix)+randomLen+checksumLen {
			continue
		}
		body, sum := secret[:len(prefix)+randomLen], secret[len(prefix)+randomLen:]
		if checksum(body) == sum && strings.Trim(body[len(prefix):], base62) == "" {
			return env
		}
	}
	return ""
}

// The bounds of a secret that was made elsewhere.
const (
	minForeign = 20
	maxForeign = 200
)

// ValidateForeign refuses a secret made elsewhere that would never open env.
func ValidateForeign(secret string, env animalstore.Environment) error {
	switch {
	case strings.HasPrefix(secret, brand) && Environment(secret) == "":
		return animalstore.Errorf(animalstore.ValidationFailed, "the key starts with %s but its checksum is wrong: it is mistyped or cut off", brand)
	case strings.HasPrefix(secret, brand) && Environment(secret) != env:
		return animalstore.Errorf(animalstore.ValidationFailed, "the key was made for %s and would not work in %s", Environment(secret), env)
	case len(secret) < minForeign || len(secret) > maxForeign:
		return animalstore.Errorf(animalstore.ValidationFailed, "the key must have %d to %d characters, not %d", minForeign, maxForeign, len(secret))
	case !visibleASCII(secret):
		return animalstore.Errorf(animalstore.ValidationFailed, "the key must consist of visible ASCII characters, without spaces")
	}
	return nil
}

func visibleASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
