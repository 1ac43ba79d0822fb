package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/inprocess"
)

const (
	cookieName = "animalstore_session"
	// sessionLasts is how long a session lasts, even if it is in use.
	sessionLasts = 12 * time.Hour
)

// newToken returns 256 random bits. Only its hash is stored.
func newToken() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// signedIn is a session of a browser, and the key that it acts as.
type signedIn struct {
	token  [32]byte // the hash of the session's token
	secret [32]byte // the hash of the key's secret
	key    *animalstore.Key
}

// findSession returns the session of a request, or nil. The key is checked each time, so a session ends as soon as its key or secret does.
func (c *Console) findSession(r *http.Request) (*signedIn, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	s := &signedIn{token: sha256.Sum256([]byte(cookie.Value))}
	var found bool
	if s.secret, found, err = c.Sessions.FindSession(r.Context(), s.token, c.Now()); err != nil || !found {
		return nil, err
	}
	s.key, err = c.Server.KeyOf(r, s.secret)
	if endsSession(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// endsSession reports whether an error means that the key doesn't work, or not from here.
func endsSession(err error) bool {
	switch codeOf(err) {
	case animalstore.InvalidAPIKey, animalstore.KeySuspended, animalstore.AddressNotAllowed:
		return true
	}
	return false
}

// setCookie sets a cookie for this many seconds. A negative number deletes it.
func (v *visit) setCookie(name, value string, maxAge int) {
	http.SetCookie(v.w, &http.Cookie{
		Name: name, Value: value, Path: "/console", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.c.Server.IsHTTPS(v.r),
	})
}

type signInPage struct {
	frame
	Next    string // where to go afterwards
	Problem string
}

// showSignIn serves GET /console/sign-in.
func (v *visit) showSignIn() error {
	if err := v.chargeAddress(); err != nil {
		return err
	}
	return v.renderSignIn(http.StatusOK, v.r.URL.Query().Get("next"), "")
}

func (v *visit) renderSignIn(status int, next, problem string) error {
	page := signInPage{v.frame("Sign in"), safeNext(next), problem}
	page.Here, page.Posted = signInPath(page.Next), status != http.StatusOK
	return v.render(status, "sign-in", page)
}

// signIn serves POST /console/sign-in. It calls the API with the key, so a wrong one
// counts against the address, and a right one is charged.
func (v *visit) signIn() error {
	key, next := strings.TrimSpace(v.field("key")), v.field("next")
	serve := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+key)
		v.c.Server.ServeAPI(w, r, nil)
	}
	_, err := newClient(&inprocess.Transport{API: http.HandlerFunc(serve), For: v.r}).GetLimits(v.r.Context())
	switch codeOf(err) {
	case animalstore.MissingAPIKey, animalstore.InvalidAPIKey:
		return v.renderSignIn(http.StatusUnauthorized, next,
			"This key isn’t valid here. Check that it is complete, not revoked or expired, and made for this "+string(v.c.Environment)+" deployment.")
	case animalstore.KeySuspended:
		return v.renderSignIn(http.StatusForbidden, next, "This key is suspended. Ask the person who manages your keys to resume it.")
	case animalstore.AddressNotAllowed:
		return v.renderSignIn(http.StatusForbidden, next,
			"This key doesn’t work from your address. Use it in its networks, or ask the person who manages your keys to add yours.")
	}
	if err != nil {
		return err
	}
	// Always a new token, so that one planted in the browser is useless.
	token := newToken()
	if err := v.c.Sessions.CreateSession(v.r.Context(), sha256.Sum256([]byte(token)), key, v.c.Now().Add(sessionLasts)); err != nil {
		return err
	}
	if old, err := v.r.Cookie(cookieName); err == nil {
		_ = v.c.Sessions.DeleteSession(v.r.Context(), sha256.Sum256([]byte(old.Value))) // it expires anyway
	}
	v.setCookie(cookieName, token, int(sessionLasts/time.Second))
	return v.goTo(safeNext(next), "")
}

// signOut serves POST /console/sign-out. It is never charged or refused, so it writes only
// if there is a session to end.
func (v *visit) signOut() error {
	if cookie, err := v.r.Cookie(cookieName); err == nil {
		token := sha256.Sum256([]byte(cookie.Value))
		_, found, err := v.c.Sessions.FindSession(v.r.Context(), token, v.c.Now())
		if err == nil && found {
			err = v.c.Sessions.DeleteSession(v.r.Context(), token)
		}
		if err != nil {
			return err // the session still works: don't pretend otherwise
		}
	}
	v.setCookie(cookieName, "", -1)
	return v.goTo("/console/sign-in", "")
}

// leadToSignIn is the response to a request without a session.
func (v *visit) leadToSignIn() error {
	if err := v.chargeAddress(); err != nil {
		return err
	}
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return v.goTo(signInPath(v.r.URL.RequestURI()), "")
	}
	return v.renderSignIn(http.StatusUnauthorized, formPage(v.r),
		"You are signed out, so nothing was changed. Sign in and fill in the form again.")
}

// signInPath is the sign-in page that leads to another page afterwards.
func signInPath(next string) string {
	return "/console/sign-in?" + url.Values{"next": {next}}.Encode()
}

// chargeAddress charges a page for which no call of the API is charged to a key.
func (v *visit) chargeAddress() error {
	seconds, err := v.c.Server.ChargeAddress(v.r)
	if err == nil {
		return nil
	}
	wait := time.Duration(seconds) * time.Second
	return &client.RateLimitError{Reset: v.c.Now().Add(wait), RetryAfter: wait, Err: err}
}

// safeNext returns next if it is a safe path of the console, or else /console.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" ||
		u.Path != "/console" && !strings.HasPrefix(u.Path, "/console/") || strings.HasPrefix(u.Path, "/console/sign-") ||
		strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(u.Path, "..") {
		return "/console"
	}
	return u.RequestURI()
}
