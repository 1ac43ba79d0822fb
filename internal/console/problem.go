package console

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
)

// problem is why a page can't show what was asked for, or an action wasn't done.
type problem struct {
	Status  int
	Heading string
	Message string
	Until   animalstore.Time // when to try again; zero: unknown
	Seconds int64            // how long that is
	Back    string           // the page that led here; "" if unknown
	Again   string           // the page to open again; "" if that won't help
	Action  string           // where to send Fields again; "" if there is nothing to send
	Fields  []sentField      // what was typed
	Resumes bool             // sending Fields again does what is left of it
}

// sentField is a value of a form that failed.
type sentField struct{ Name, Value string }

type problemPage struct {
	frame
	problem
}

// codeOf is the code of an error, or "".
func codeOf(err error) animalstore.Code {
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ""
}

// codeIn is the code in the body of an error response.
func codeIn(body io.Reader) animalstore.Code {
	var e struct{ Code animalstore.Code }
	_ = json.NewDecoder(body).Decode(&e) // "" if it can't be read
	return e.Code
}

// refusalText says why something wasn't stored.
func refusalText(err error) string {
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		return sentence(coded.Message)
	}
	return "It couldn’t be stored. The server’s log says why."
}

// refusal returns the error in a response, as the client would.
func refusal(res *http.Response, now time.Time) error {
	var e animalstore.Error
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		return err
	}
	refused := &client.Error{Status: res.StatusCode, Err: &e}
	if res.StatusCode != http.StatusTooManyRequests {
		return refused
	}
	seconds, err := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 64)
	if err != nil {
		return err
	}
	wait := time.Duration(seconds) * time.Second
	return &client.RateLimitError{Reset: now.Add(wait), RetryAfter: wait, Err: refused}
}

// showProblem shows a page for a problem.
func (c *Console) showProblem(w http.ResponseWriter, f frame, p problem) {
	if p.Seconds > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(p.Seconds, 10))
	}
	c.render(w, p.Status, "problem", problemPage{f, p})
}

func (v *visit) show(p problem) { v.c.showProblem(v.w, v.c.frame(v, p.Heading), v.withWayBack(p)) }

// withWayBack adds the page that led here, and what was typed there if sending it again
// may succeed.
func (v *visit) withWayBack(p problem) problem {
	if from, err := url.Parse(v.r.Referer()); err == nil && from.Host == v.r.Host && from.Path != "" {
		p.Back = safeNext(from.RequestURI())
	}
	if p.Status != http.StatusTooManyRequests && p.Status < http.StatusInternalServerError {
		return p
	}
	if v.r.Method != http.MethodPost {
		p.Again = v.r.URL.RequestURI()
		return p
	}
	p.Back = formPage(v.r)
	if isUpload(v.r) { // the page can't hold files
		return p
	}
	p.Action = v.r.URL.Path
	if (p.Status == http.StatusTooManyRequests || p.Resumes) && v.r.PostForm.Has("once") { // there is something to do
		v.r.PostForm.Set("once", newOnce())
	}
	for _, name := range slices.Sorted(maps.Keys(v.r.PostForm)) {
		for _, value := range v.r.PostForm[name] {
			p.Fields = append(p.Fields, sentField{name, value})
		}
	}
	return p
}

// fail shows why a page can't be shown. v is nil without a session.
func (c *Console) fail(w http.ResponseWriter, v *visit, err error) {
	var limited *client.RateLimitError
	var refused *client.Error
	p := problem{Status: http.StatusInternalServerError, Heading: "Something went wrong", Message: "The console can’t show this page. The server’s log says why."}
	switch {
	case errors.As(err, &limited):
		p = limitedBy(limited)
	case endsSession(err) && v != nil: // the key ended just now
		c.leadToSignIn(w, v.r)
		return
	case errors.Is(err, errSentTwice):
		p = problem{
			Status: http.StatusConflict, Heading: "This form was sent before",
			Message: "Nothing was done this time. Only the first response showed the secret: if you missed it, rotate the key or webhook. If the first one failed, open the form again.",
		}
	case isStale(err):
		p = problem{Status: http.StatusPreconditionFailed, Heading: titles[http.StatusPreconditionFailed], Message: "Someone changed it after you opened the page, so nothing was done. Open it again, then decide."}
	case errors.As(err, &refused):
		p = problem{Status: refused.Status, Heading: titles[refused.Status], Message: sentence(refused.Err.Message)}
		if p.Heading == "" {
			p.Heading = "Something went wrong"
		}
	case codeOf(err) == "" && v == nil:
		p = problem{Status: http.StatusServiceUnavailable, Heading: "The store doesn’t respond", Message: "Your session couldn’t be checked. Try again in a moment."}
	}
	if errors.As(err, new(unfinishedError)) && p.Status >= http.StatusInternalServerError {
		p.Heading, p.Resumes = "This may not be finished", true
	}
	if v != nil {
		p = v.withWayBack(p)
	}
	c.showProblem(w, c.frame(v, p.Heading), p)
}

var titles = map[int]string{
	http.StatusBadRequest:         "That isn’t valid",
	http.StatusForbidden:          "Not allowed",
	http.StatusNotFound:           "Not found",
	http.StatusConflict:           "That isn’t possible now",
	http.StatusPreconditionFailed: "Someone else changed it",
	http.StatusServiceUnavailable: "The store doesn’t respond",
}

// limitedBy is for an error that says that the key has reached its limit.
func limitedBy(err *client.RateLimitError) problem {
	return limitedProblem(codeOf(err), err.Reset, int64((err.RetryAfter+time.Second-1)/time.Second))
}

// limitedProblem is for a key or an address that has reached its limit.
func limitedProblem(code animalstore.Code, until time.Time, seconds int64) problem {
	p := problem{Status: http.StatusTooManyRequests, Heading: "Too many requests", Until: animalstore.At(until), Seconds: max(1, seconds)}
	switch code {
	case animalstore.KeyBanned:
		p.Heading = "This key is banned"
		p.Message = "It kept sending requests after it was told to wait. Wait until the ban ends, or ask an operator to lift it."
	case animalstore.DailyQuotaExceeded:
		p.Message = "The limit of requests per day (UTC) is reached. Pages of the console count too."
	default:
		p.Message = "The limit of requests per minute is reached. Pages of the console count too."
	}
	return p
}

// formError is why a form was refused.
type formError struct {
	Field   string // the name of the input; "" if it isn't about one
	Message string
}

// At reports whether the error is about this input.
func (e formError) At(field string) bool { return e.Message != "" && e.Field == field }

// inputOf are the inputs of the fields that the API's messages begin with.
var inputOf = map[string]string{
	"name": "name", "categoryId": "category", "status": "status", "plan": "plan", "permissions": "permission", "networks": "networks", "expiresAt": "expires",
	"since": "since", "url": "url", "types": "types", "description": "description",
}

// fieldError is an error of the console about an input.
type fieldError struct {
	field string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

// badField is an error like one of the API, about an input.
func badField(field, message string) error {
	return &fieldError{field, &client.Error{Status: http.StatusBadRequest, Err: animalstore.Errorf(animalstore.ValidationFailed, "%s", message)}}
}

// formProblem returns why the API refused a form, if the form can be fixed.
func formProblem(err error) (problem formError, status int, ok bool) {
	var refused *client.Error
	if !errors.As(err, &refused) {
		var invalid *animalstore.Error
		if errors.As(err, &invalid) && invalid.Code == animalstore.ValidationFailed { // it wasn't sent
			return formErrorOf(err, invalid.Message), http.StatusBadRequest, true
		}
		return formError{}, 0, false
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		message := refused.Err.Message
		if refused.Err.Code == animalstore.IdempotencyKeyReused {
			message = "this form was already sent with other values; to send these too, send it again"
		}
		return formErrorOf(err, message), refused.Status, true
	}
	return formError{}, 0, false
}

// filterProblem returns what is wrong with a filter, and the status of a page. An error
// about something else is returned as it is.
func filterProblem(err error) (wrong formError, status int, other error) {
	var own *fieldError
	if !errors.As(err, &own) {
		return formError{}, http.StatusOK, err
	}
	wrong, status, _ = formProblem(err)
	return wrong, status, nil
}

func formErrorOf(err error, message string) formError {
	first, _, _ := strings.Cut(message, " ")
	e := formError{inputOf[first], sentence(message)}
	var own *fieldError
	if errors.As(err, &own) {
		e.Field = own.field
	}
	return e
}

// isStale reports whether a change was refused because someone else made one.
func isStale(err error) bool { return codeOf(err) == animalstore.PreconditionFailed }

// sentence begins a message with a capital letter and ends it with a full stop.
func sentence(message string) string {
	if message == "" {
		return ""
	}
	message = sentenceCase(message)
	if last := message[len(message)-1]; last != '.' && last != '!' && last != '?' {
		message += "."
	}
	return message
}

// sentenceCase begins a text with a capital letter.
func sentenceCase(text string) string {
	if c := text[0]; c >= 'a' && c <= 'z' {
		return string(c-'a'+'A') + text[1:]
	}
	return text
}

// conflict is a field whose value in the form differs from the one someone else has saved.
type conflict struct{ Field, Mine, Theirs string }

// conflicts returns the fields whose values differ.
func conflicts(all ...conflict) (different []conflict) {
	for _, c := range all {
		if c.Mine != c.Theirs {
			different = append(different, c)
		}
	}
	return different
}
