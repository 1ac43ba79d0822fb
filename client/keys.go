package client

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"animalstore"
)

// NewKey is a key to create. Only the name is required. The defaults are the free plan,
// permissions read and write, and no expiry. The key is for the deployment that creates
// it.
type NewKey struct {
	Name        string                  `json:"name"`
	Plan        animalstore.Plan        `json:"plan,omitzero"`
	Limits      animalstore.Limits      `json:"limits,omitzero"` // required for enterprise, not allowed for other plans
	Permissions animalstore.Permissions `json:"permissions,omitzero"`
	Networks    animalstore.Networks    `json:"networks,omitzero"` // empty: the key works from anywhere
	ExpiresAt   animalstore.Time        `json:"expiresAt,omitzero"`
}

// KeyWithSecret is a key in the only response that shows its secret. Printing or
// logging it omits the secret, which is in Secret and in its JSON.
type KeyWithSecret struct {
	animalstore.Key
	Secret string `json:"secret"`
}

func (k KeyWithSecret) String() string {
	return fmt.Sprintf("key %d (%s), secret not shown", k.ID, k.Name)
}

// GoString is like String, for %#v.
func (k KeyWithSecret) GoString() string { return k.String() }

// LogValue is like String, for log/slog.
func (k KeyWithSecret) LogValue() slog.Value { return slog.StringValue(k.String()) }

// DefaultGrace is the service's default for how long the previous secrets of a
// rotated key keep working.
const DefaultGrace = 24 * time.Hour

// ListKeys lists keys, newest first, including revoked and expired ones. Like
// all operations on keys it needs a key with the permission admin.
func (c *Client) ListKeys(ctx context.Context, options ...CallOption) iter.Seq2[animalstore.Key, error] {
	return list(ctx, c, "listKeys", "/keys", url.Values{}, options, isKey)
}

// CreateKey creates a key. Store its secret: it is not shown again. The service doesn't
// support Idempotency-Key here, because it would have to store the secret. So this call
// is only retried if it's certain that nothing was created. After [ErrOutcomeUnknown],
// look for the key in the list and revoke it.
func (c *Client) CreateKey(ctx context.Context, key NewKey, options ...CallOption) (KeyWithSecret, error) {
	op := operation{name: "createKey", method: http.MethodPost, path: "/keys", body: key, repeat: harmful, secret: true}
	return receive(ctx, c, op, options, isKeyWithSecret)
}

// GetKey returns one key.
func (c *Client) GetKey(ctx context.Context, id int64, options ...CallOption) (animalstore.Key, error) {
	return receive(ctx, c, operation{name: "getKey", method: http.MethodGet, path: keyPath(id)}, options, isKey)
}

// UpdateKey changes a key and returns the changed key. The change takes effect within a
// second. Use [IfMatch] to change it only if it is still in the state you read; using
// the key in between doesn't count as a change.
func (c *Client) UpdateKey(ctx context.Context, id int64, patch animalstore.KeyPatch, options ...CallOption) (animalstore.Key, error) {
	return receive(ctx, c, operation{name: "updateKey", method: http.MethodPatch, path: keyPath(id), body: patch,
		conditional: true}, options, isKey)
}

// RevokeKey disables a key permanently. Revoking it again is not an error.
func (c *Client) RevokeKey(ctx context.Context, id int64, options ...CallOption) error {
	return c.receiveNothing(ctx, operation{name: "revokeKey", method: http.MethodDelete, path: keyPath(id), conditional: true}, options)
}

// RotateKey gives a key a new secret. The previous ones keep working for the grace
// period, in whole seconds, 0 to 90 days; see [DefaultGrace]. Like
// [Client.CreateKey] it's only retried if it's certain that nothing was done.
// After [ErrOutcomeUnknown], rotate the key again.
func (c *Client) RotateKey(ctx context.Context, id int64, grace time.Duration, options ...CallOption) (KeyWithSecret, error) {
	return receive(ctx, c, rotation("rotateKey", keyPath(id), grace), options, isKeyWithSecret)
}

// rotation is the operation that gives a key or a webhook a new secret.
func rotation(name, path string, grace time.Duration) operation {
	body := struct {
		GraceSeconds int64 `json:"graceSeconds"`
	}{int64((grace + time.Second - 1) / time.Second)}
	return operation{name: name, method: http.MethodPost, path: path + "/rotate", body: body, repeat: harmful,
		secret: true, conditional: true}
}

// UnbanKey lifts the ban of a key, if it has one; [Meta.BanLifted] says whether it did.
func (c *Client) UnbanKey(ctx context.Context, id int64, options ...CallOption) (animalstore.Key, error) {
	return receive(ctx, c, operation{name: "unbanKey", method: http.MethodPost, path: keyPath(id) + "/unban",
		conditional: true}, options, isKey)
}

// GetKeyUsage is like [Client.GetUsage], for any key.
func (c *Client) GetKeyUsage(ctx context.Context, id int64, hours int, options ...CallOption) ([]animalstore.Usage, error) {
	op := operation{name: "getKeyUsage", method: http.MethodGet, path: keyPath(id) + "/usage" + hoursQuery(hours)}
	return receive(ctx, c, op, options, isUsage)
}

func keyPath(id int64) string { return fmt.Sprintf("/keys/%d", id) }

func isKey(k *animalstore.Key) bool { return k.ID > 0 && k.Name != "" && k.Plan != "" }

func isKeyWithSecret(k *KeyWithSecret) bool { return isKey(&k.Key) && k.Secret != "" }
