package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"animalstore"
)

// NewKey is what to make a key of. Only the name is needed: without a plan it is
// free, without permissions it may read and write, without an end it has none.
// It is for the deployment that makes it.
type NewKey struct {
	Name        string                  `json:"name"`
	Plan        animalstore.Plan        `json:"plan,omitzero"`
	Limits      animalstore.Limits      `json:"limits,omitzero"` // of enterprise, which needs them, and of no other plan
	Permissions animalstore.Permissions `json:"permissions,omitzero"`
	ExpiresAt   animalstore.Time        `json:"expiresAt,omitzero"`
}

// KeyPatch is what to change of a key. What is nil stays as it is.
type KeyPatch struct {
	Name        *string                  `json:"name,omitempty"`
	Plan        *animalstore.Plan        `json:"plan,omitempty"`
	Limits      *animalstore.Limits      `json:"limits,omitempty"`
	Permissions *animalstore.Permissions `json:"permissions,omitempty"`
	ExpiresAt   *animalstore.Time        `json:"expiresAt,omitempty"` // the zero time: never
}

// KeyWithSecret is a key at the one time its secret is shown. It prints without
// the secret, which is in Secret and in its JSON.
type KeyWithSecret struct {
	animalstore.Key
	Secret string `json:"secret"`
}

func (k KeyWithSecret) String() string {
	return fmt.Sprintf("key %d (%s), its secret not shown", k.ID, k.Name)
}

// GoString is String, for %#v.
func (k KeyWithSecret) GoString() string { return k.String() }

// LogValue is String, for log/slog.
func (k KeyWithSecret) LogValue() slog.Value { return slog.StringValue(k.String()) }

// DefaultGrace is how long the service lets the secrets of a rotated key work on
// when it is not told.
const DefaultGrace = 24 * time.Hour

// ListKeys lists keys, the latest first, revoked and expired ones included. Like
// all that is about keys it needs a key with the permission admin.
func (c *Client) ListKeys(ctx context.Context, q PageQuery, options ...CallOption) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		for k, err := range list(ctx, c, "listKeys", "/keys", url.Values{}, q.PageSize, options, isKey) {
			if !yield(animalstore.Key(k), err) {
				return
			}
		}
	}
}

// CreateKey makes a key. Keep its secret: it is not shown again. The service
// takes no Idempotency-Key here, for it would have to keep the secret, too. So
// this is sent again only if it is certain that nothing was made. After
// [ErrOutcomeUnknown], look for the key in the list and revoke it.
func (c *Client) CreateKey(ctx context.Context, key NewKey, options ...CallOption) (KeyWithSecret, error) {
	k := &call{operation: "createKey", method: http.MethodPost, path: "/keys", body: key, name: key.Name, repeat: harmful, secret: true}
	return sendForSecret(ctx, c, k, options)
}

// GetKey returns one key.
func (c *Client) GetKey(ctx context.Context, id int64, options ...CallOption) (animalstore.Key, error) {
	return sendForKey(ctx, c, &call{operation: "getKey", method: http.MethodGet, path: keyPath(id)}, options)
}

// UpdateKey changes a key and returns it as it is then. It counts within a
// second.
func (c *Client) UpdateKey(ctx context.Context, id int64, patch KeyPatch, options ...CallOption) (animalstore.Key, error) {
	return sendForKey(ctx, c, &call{operation: "updateKey", method: http.MethodPatch, path: keyPath(id), body: patch, name: textOf(patch.Name)}, options)
}

// RevokeKey withdraws a key for good. To revoke one again is no error.
func (c *Client) RevokeKey(ctx context.Context, id int64, options ...CallOption) error {
	return c.sendOnly(ctx, &call{operation: "revokeKey", method: http.MethodDelete, path: keyPath(id)}, options)
}

// RotateKey gives a key a new secret. Those it had work on for the grace period,
// in whole seconds, 0 to 90 days; see [DefaultGrace]. It is sent again only if
// it is certain that nothing was done, like [Client.CreateKey]. After
// [ErrOutcomeUnknown], rotate it once more.
func (c *Client) RotateKey(ctx context.Context, id int64, grace time.Duration, options ...CallOption) (KeyWithSecret, error) {
	body := struct {
		GraceSeconds int64 `json:"graceSeconds"`
	}{int64((grace + time.Second - 1) / time.Second)}
	k := &call{operation: "rotateKey", method: http.MethodPost, path: keyPath(id) + "/rotate", body: body, repeat: harmful, secret: true}
	return sendForSecret(ctx, c, k, options)
}

// UnbanKey lifts the ban of a key. Where there is none, nothing changes.
func (c *Client) UnbanKey(ctx context.Context, id int64, options ...CallOption) (animalstore.Key, error) {
	return sendForKey(ctx, c, &call{operation: "unbanKey", method: http.MethodPost, path: keyPath(id) + "/unban"}, options)
}

// GetKeyUsage is [Client.GetUsage] for any key.
func (c *Client) GetKeyUsage(ctx context.Context, id int64, hours int, options ...CallOption) ([]animalstore.Usage, error) {
	k := &call{operation: "getKeyUsage", method: http.MethodGet, path: keyPath(id) + "/usage" + hoursQuery(hours)}
	return send(ctx, c, k, options, isUsage)
}

func keyPath(id int64) string { return "/keys/" + decimal(id) }

// key is a key as JSON has it: its permissions are names there.
type key animalstore.Key

func (k *key) UnmarshalJSON(text []byte) error {
	type plain key // without this method
	in := struct {
		*plain
		Permissions []string `json:"permissions"`
	}{plain: (*plain)(k)}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	k.Permissions = 0
	for _, name := range in.Permissions {
		p, _ := animalstore.ParsePermission(name) // one we do not know is passed over
		k.Permissions |= p
	}
	return nil
}

func isKey(k *key) bool { return k.ID > 0 && k.Name != "" && k.Plan != "" }

func sendForKey(ctx context.Context, c *Client, k *call, options []CallOption) (animalstore.Key, error) {
	got, err := send(ctx, c, k, options, isKey)
	return animalstore.Key(got), err
}

// secretKey is a key with its secret as JSON has it.
type secretKey struct {
	key    key
	Secret string
}

func (s *secretKey) UnmarshalJSON(text []byte) error {
	var in struct{ Secret string }
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	s.Secret = in.Secret
	return json.Unmarshal(text, &s.key)
}

func sendForSecret(ctx context.Context, c *Client, k *call, options []CallOption) (KeyWithSecret, error) {
	got, err := send(ctx, c, k, options, func(s *secretKey) bool { return isKey(&s.key) && s.Secret != "" })
	return KeyWithSecret{animalstore.Key(got.key), got.Secret}, err
}
