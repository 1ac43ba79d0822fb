package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	// keptCookie is a form that was sent after the session had ended or over a limit, or
	// that the server failed at. Its page shows it again to the key that typed it, and to no
	// other. No form that is kept has a secret.
	keptCookie = "animalstore_form"
	keptLasts  = 15 * 60 // seconds
	// maxKept is how long the value of a cookie may be: browsers refuse more than 4,096
	// bytes with its name.
	maxKept = 4000
)

// keptForm is the content of keptCookie.
type keptForm struct {
	Action string // where it was sent
	Status int    // of the response
	Fields url.Values
}

// keepForm keeps a form with input, which has a field "by" with the key it was shown to.
// It returns what to tell the person about what they typed.
func (c *Console) keepForm(w http.ResponseWriter, r *http.Request, status int) string {
	if tooLarge(r) || r.PostForm.Get("by") == "" {
		return "Sign in and try again."
	}
	kept, err := json.Marshal(keptForm{r.URL.Path, status, r.PostForm})
	if err != nil {
		panic(err) // it is text
	}
	value := base64.RawURLEncoding.EncodeToString(kept)
	if len(value) > maxKept {
		return "What you typed is too long to keep: go back in your browser to copy it, then sign in."
	}
	c.setCookie(w, r, keptCookie, value, formPage(r), keptLasts)
	return "Sign in with the same key to see what you typed again, and send it."
}

// takeKept reports whether a form to this address was kept. If so, it restores the fields
// of the form, deletes the cookie and returns what to tell the person.
func (v *visit) takeKept(action string) (notice formError, ok bool) {
	cookie, err := v.r.Cookie(keptCookie)
	if err != nil {
		return notice, false
	}
	v.c.setCookie(v.w, v.r, keptCookie, "", v.r.URL.Path, -1)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	var kept keptForm
	if err != nil || json.Unmarshal(text, &kept) != nil || kept.Action != action || kept.Fields.Get("by") != strconv.FormatInt(v.key.ID, 10) {
		return notice, false
	}
	v.r.PostForm = kept.Fields
	switch kept.Status {
	case http.StatusUnauthorized:
		notice.Message = "You were signed out when you sent this, so nothing was changed. Here is what you typed: check it, then send it."
	case http.StatusTooManyRequests:
		notice.Message = "You were over the limit when you sent this, so nothing was changed. Here is what you typed: check it, then send it."
	default:
		notice.Message = "The server failed when you sent this. Here is what you typed: if it isn’t there yet, send it again."
	}
	return notice, true
}

// formPage is the page with the form that a request sends.
func formPage(r *http.Request) string {
	switch path := r.URL.Path; path {
	case "/console/pets", "/console/keys":
		return path + "/new"
	case "/console/orders":
		if id, err := strconv.ParseInt(r.PostFormValue("petId"), 10, 64); err == nil {
			return "/console/pets/" + strconv.FormatInt(id, 10)
		}
		return path
	default: // /console/keys/7/rotate is a form of /console/keys/7
		parts := strings.Split(path, "/")
		return strings.Join(parts[:min(4, len(parts))], "/")
	}
}
