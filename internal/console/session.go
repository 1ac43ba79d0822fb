package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
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

// session is what is known about a signed-in user.
type session struct {
	token  [32]byte // its hash
	secret [32]byte // the hash of the key's secret
	key    *animalstore.Key
}

// findSession returns the session of a request, or nil. The key is checked anew each
// time, so a session ends as soon as its key or secret does.
func (c *Console) findSession(r *http.Request) (*session, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	s := &session{token: sha256.Sum256([]byte(cookie.Value))}
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
func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, name, value, path string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.Server.IsHTTPS(r),
	})
}

type signInPage struct {
	frame
	Next    string // where to go afterwards
	Problem string
}

// showSignIn serves GET /console/sign-in.
func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	if !c.chargeAddress(w, r) {
		return
	}
	c.renderSignIn(w, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (c *Console) renderSignIn(w http.ResponseWriter, status int, next, problem string) {
	page := signInPage{c.frame(nil, "Sign in"), safeNext(next), problem}
	page.Here, page.Posted = signInPath(page.Next), status != http.StatusOK
	c.render(w, status, "sign-in", page)
}

// signIn serves POST /console/sign-in. It calls the API with the key, so a wrong one
// counts against the address, and a right one is charged.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	key, next := strings.TrimSpace(r.PostFormValue("key")), r.PostFormValue("next")
	call, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://console/v1/limits", nil)
	if err != nil {
		c.fail(w, nil, err)
		return
	}
	call.Header.Set("Authorization", "Bearer "+key)
	res, err := c.callAPI(r, nil, nil).RoundTrip(call)
	if err != nil {
		c.fail(w, nil, err)
		return
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized:
		c.renderSignIn(w, status, next, "This key isn’t valid here. Check that it is complete, not revoked or expired, and made for this "+string(c.Environment)+" deployment.")
	case status == http.StatusForbidden:
		message := "This key doesn’t work from your address. Use it in its networks, or ask the person who manages your keys to add yours."
		if codeIn(res.Body) == animalstore.KeySuspended {
			message = "This key is suspended. Ask the person who manages your keys to resume it."
		}
		c.renderSignIn(w, status, next, message)
	case status == http.StatusTooManyRequests:
		seconds, _ := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 64) // the API sends a number
		p := limitedProblem(codeIn(res.Body), c.Now().Add(time.Duration(seconds)*time.Second), seconds)
		p.Back = signInPath(safeNext(next))
		c.showProblem(w, c.frame(nil, "Too many requests"), p)
	case status >= http.StatusInternalServerError:
		c.showProblem(w, c.frame(nil, "Unavailable"), problem{Status: status, Heading: "The store doesn’t respond", Message: "Your key couldn’t be checked. Try again in a moment.", Back: signInPath(safeNext(next))})
	default:
		c.startSession(w, r, key, next)
	}
}

func (c *Console) startSession(w http.ResponseWriter, r *http.Request, key, next string) {
	// Always a new token, so that one planted in the browser is useless.
	token := newToken()
	if err := c.Sessions.CreateSession(r.Context(), sha256.Sum256([]byte(token)), key, c.Now().Add(sessionLasts)); err != nil {
		c.fail(w, nil, err)
		return
	}
	if old, err := r.Cookie(cookieName); err == nil {
		_ = c.Sessions.DeleteSession(r.Context(), sha256.Sum256([]byte(old.Value))) // it expires anyway
	}
	c.setCookie(w, r, cookieName, token, "/console", int(sessionLasts/time.Second))
	http.Redirect(w, r, safeNext(next), http.StatusSeeOther)
}

// signOut serves POST /console/sign-out. It is never charged or refused, so it writes only
// if there is a session to end.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		token := sha256.Sum256([]byte(cookie.Value))
		_, found, err := c.Sessions.FindSession(r.Context(), token, c.Now())
		if err == nil && found {
			err = c.Sessions.DeleteSession(r.Context(), token)
		}
		if err != nil {
			c.fail(w, nil, err) // the session still works: don't pretend otherwise
			return
		}
	}
	c.setCookie(w, r, cookieName, "", "/console", -1)
	http.Redirect(w, r, "/console/sign-in", http.StatusSeeOther)
}

// leadToSignIn is the response to a request without a session.
func (c *Console) leadToSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if c.chargeAddress(w, r) {
			http.Redirect(w, r, signInPath(r.URL.RequestURI()), http.StatusSeeOther)
		}
		return
	}
	if c.chargeAddress(w, r) {
		c.renderSignIn(w, http.StatusUnauthorized, formPage(r), "You are signed out, so nothing was changed. Sign in and fill in the form again.")
	}
}

// signInPath is the sign-in page that leads to another page afterwards.
func signInPath(next string) string {
	return "/console/sign-in?" + url.Values{"next": {next}}.Encode()
}

// chargeAddress charges a page without a session to the address. It reports false if it
// has shown that the limit is reached.
func (c *Console) chargeAddress(w http.ResponseWriter, r *http.Request) bool {
	seconds, err := c.Server.ChargeAddress(r)
	if err != nil {
		p := limitedProblem(codeOf(err), c.Now().Add(time.Duration(seconds)*time.Second), seconds)
		if r.Method == http.MethodPost {
			p.Back = formPage(r)
		}
		c.showProblem(w, c.frame(nil, "Too many requests"), p)
	}
	return err == nil
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
