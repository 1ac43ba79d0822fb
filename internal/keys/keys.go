// Package keys creates and checks API keys.
//
// A key's secret looks like ast_live_<32 characters><6 characters>: a prefix that
// names the deployment and that secret scanners recognise, 190 random bits, and a
// checksum, so that a mistyped key is refused without a database lookup. Only the
// SHA-256 of the secret is ever stored.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"strings"

	"animalstore"
)

const (
	brand       = "ast_" // the prefix of every key minted here
	randomLen   = 32
	checksumLen = 6
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

var prefixes = map[animalstore.Environment]string{
	animalstore.Production: "ast_live_",
	animalstore.Staging:    "ast_test_",
}

// Mint returns a new secret for a deployment.
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
			// 248 is the largest multiple of 62 in a byte: below it, every
			// character is equally likely.
			if b < 248 && len(secret) < len(prefix)+randomLen {
				secret = append(secret, base62[b%62])
			}
		}
	}
	return string(secret) + checksum(string(secret))
}

// Hash returns the hash of a secret, which is stored instead of the secret.
func Hash(secret string) [32]byte {
	// This runs for every request, and converting the string would allocate.
	var buf [maxForeign]byte
	return sha256.Sum256(append(buf[:0], secret...))
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

// Environment returns the deployment that a secret was minted for, or "" if the
// secret is mistyped, cut off or wasn't minted here.
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

// The length limits of a secret that was created elsewhere.
const (
	minForeign = 20
	maxForeign = 200
)

// ValidateForeign rejects a secret created elsewhere that would never work in env.
func ValidateForeign(secret string, env animalstore.Environment) error {
	switch {
	case strings.HasPrefix(secret, brand) && Environment(secret) == "":
		return animalstore.Errorf(animalstore.ValidationFailed, "the key starts with %s but its checksum is wrong: it is mistyped or cut off", brand)
	case strings.HasPrefix(secret, brand) && Environment(secret) != env:
		return animalstore.Errorf(animalstore.ValidationFailed, "the key was created for %s and wouldn't work in %s", Environment(secret), env)
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

// webhookSecretBytes is the length of a webhook's secret. It matches the output
// of the hash it is used with.
const webhookSecretBytes = 32

// MintWebhookSecret returns a new secret for a webhook, in the form of Standard Webhooks.
func MintWebhookSecret() string {
	var secret [webhookSecretBytes]byte
	rand.Read(secret[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(secret[:])
}
