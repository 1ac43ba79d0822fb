package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"animalstore/client"
)

const (
	// secretCookie takes a new secret to the page that shows it, which can then be reloaded
	// without sending the form again. Only the session that made the secret can read it.
	secretCookie = "animalstore_secret"
	secretLasts  = 300 // seconds
)

// newSecret is the content of secretCookie.
type newSecret struct {
	Secret  string
	Rotated bool
	Grace   int64 // how long the old secret keeps working, in seconds
}

type secretPage struct {
	frame
	newSecret        // empty: it was shown before
	Kind      string // "key" or "webhook"
	ID        string
	Path      string // of the page about it
}

// showNext redirects to the page that shows the secret of what has this path.
func (v *visit) showNext(path string, secret newSecret) error {
	text, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	seal, err := sealOf(v.r)
	if err != nil {
		return err
	}
	sealed := base64.RawURLEncoding.EncodeToString(seal.Seal(nil, nil, text, []byte(path)))
	path += "/secret"
	v.c.setCookie(v.w, v.r, secretCookie, sealed, path, secretLasts)
	return v.goTo(path, "")
}

// sealOf encrypts with the token of the session. The server stores only its hash.
func sealOf(r *http.Request) (cipher.AEAD, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256([]byte("secret " + cookie.Value))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// takeSecret returns the secret that the page shows, and forgets it.
func (c *Console) takeSecret(w http.ResponseWriter, r *http.Request) (secret newSecret, ok bool) {
	cookie, err := r.Cookie(secretCookie)
	if err != nil || r.Method != http.MethodGet {
		return secret, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return secret, false
	}
	seal, err := sealOf(r)
	if err != nil {
		return secret, false
	}
	text, err := seal.Open(nil, nil, sealed, []byte(strings.TrimSuffix(r.URL.Path, "/secret")))
	if err != nil || json.Unmarshal(text, &secret) != nil {
		return secret, false
	}
	c.setCookie(w, r, secretCookie, "", r.URL.Path, -1)
	return secret, true
}

// showSecret serves GET /console/keys/{id}/secret and the same of webhooks. It shows the
// secret once, and then isn't charged, so that no limit can keep a secret from its owner.
func (v *visit) showSecret() error {
	secret, ok := v.c.takeSecret(v.w, v.r)
	if !ok && !v.c.chargeAddress(v.w, v.r) { // no call charges this page to the key
		return nil
	}
	v.c.renderSecret(v.w, v.r, v, secret)
	return nil
}

// renderSecret shows a secret. v is nil if the session has ended with the old one.
func (c *Console) renderSecret(w http.ResponseWriter, r *http.Request, v *visit, secret newSecret) {
	path := strings.TrimSuffix(r.URL.Path, "/secret")
	kind := "key"
	if strings.HasPrefix(path, "/console/webhooks/") {
		kind = "webhook"
	}
	c.render(w, http.StatusOK, "secret", secretPage{c.frame(v, "Secret of "+kind+" "+r.PathValue("id")), secret, kind, r.PathValue("id"), path})
}

// rotate replaces the secret of the key or webhook in the path by calling change, and
// shows the new one. If the form is invalid, again shows it with the error. A form that
// is sent twice rotates once.
func (v *visit) rotate(change func(id int64, grace time.Duration) (secret string, err error), again func(status int, wrong formError) error) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	hours, err := v.graceHours()
	if err == nil {
		err = v.useForm()
	}
	if errors.Is(err, errSentTwice) {
		return v.showSentTwice()
	}
	var secret string
	if err == nil {
		secret, err = change(id, time.Duration(hours)*time.Hour)
	}
	if message, status, ok := formProblem(err); ok {
		return again(status, formError{"graceHours", message.Message})
	}
	if isStale(err) {
		return again(http.StatusPreconditionFailed, formError{"graceHours", "Somebody changed it after you opened the page, so it wasn’t rotated. Look at it again, then decide."})
	}
	if err != nil {
		return err
	}
	return v.showNext(strings.TrimSuffix(v.r.URL.Path, "/rotate"), newSecret{secret, true, hours * 3600})
}

// rotateForm is what the form for a new secret shows.
type rotateForm struct {
	Hours   string
	Once    string
	Problem formError
}

func newRotateForm() rotateForm { return rotateForm{Hours: "24", Once: newOnce()} }

// graceHours is how long the secret before a rotation keeps working.
func (v *visit) graceHours() (int64, error) {
	hours, err := v.integer("graceHours", "the number of hours")
	if err == nil && (hours < 0 || hours > 90*24) {
		err = badField("graceHours", "the old secret can keep working for 0 to 2160 hours")
	}
	return hours, err
}

// readTagged reads what the path names, with the ETag that guards changes of it.
func readTagged[T any](v *visit, get func(context.Context, int64, ...client.CallOption) (T, error)) (item T, etag string, err error) {
	id, err := v.id()
	if err != nil {
		return item, "", err
	}
	var meta client.Meta
	item, err = get(v.r.Context(), id, client.ReadMeta(&meta))
	return item, meta.ETag, err
}
