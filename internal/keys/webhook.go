package keys

import (
	"crypto/rand"
	"encoding/base64"
)

// webhookSecretBytes is the length of a webhook's secret. It matches the output
// of the hash it is used with.
const webhookSecretBytes = 32

// MintWebhookSecret returns a new secret for a webhook, in the form of Standard Webhooks.
func MintWebhookSecret() string {
	var secret [webhookSecretBytes]byte
	rand.Read(secret[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(secret[:])
}
