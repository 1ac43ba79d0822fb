package console

import (
	"cmp"
	"encoding/json"
	"errors"
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

// Error implements the interface error: a page that returns a problem shows it.
func (p problem) Error() string { return p.Message }

func notFound(message string) problem {
	return problem{Status: http.StatusNotFound, Heading: titles[http.StatusNotFound], Message: message}
}

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

// withWayBack adds the page that led here, and what was typed there if sending it again
// may succeed.
func (v *visit) withWayBack(p problem) problem {
	if from, err := url.Parse(v.r.Referer()); err == nil && from.Host == v.r.Host && from.Path != "" {
		p.Back = safeNext(from.RequestURI())
	}
	limited := p.Status == http.StatusTooManyRequests
	if !limited && p.Status < http.StatusInternalServerError {
		return p
	}
	if v.r.Method != http.MethodPost {
		p.Again = v.r.URL.RequestURI()
		return p
	}
	p.Back = formPage(v.r)
	if v.signedIn == nil || isUpload(v.r) { // the page can't hold a key or files
		return p
	}
	p.Action = v.r.URL.Path
	for _, name := range slices.Sorted(maps.Keys(v.r.PostForm)) {
		for _, value := range v.r.PostForm[name] {
			if name == "once" && (limited || p.Resumes) { // there is something to do
				value = newOnce()
			}
			p.Fields = append(p.Fields, sentField{name, value})
		}
	}
	return p
}

// fail shows why a request failed.
func (v *visit) fail(err error) {
	if v.signedIn != nil && endsSession(err) { // the key ended just now
		v.signedIn = nil
		if err = v.leadToSignIn(); err == nil {
			return
		}
	}
	p := v.withWayBack(v.problemOf(err))
	if p.Seconds > 0 {
		v.w.Header().Set("Retry-After", strconv.FormatInt(p.Seconds, 10))
	}
	_ = v.render(p.Status, "problem", problemPage{v.frame(p.Heading), p}) // is always nil
}

// problemOf is what an error means for the reader.
func (v *visit) problemOf(err error) (p problem) {
	var limited *client.RateLimitError
	var refused *client.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &limited):
		return limitedBy(limited)
	case errors.Is(err, errSentTwice):
		return problem{
			Status: http.StatusConflict, Heading: "This form was sent before",
			Message: "Nothing was done this time. Only the first response showed the secret: if you missed it, rotate the key or webhook. If the first one failed, open the form again.",
		}
	case isStale(err):
		return problem{
			Status: http.StatusPreconditionFailed, Heading: titles[http.StatusPreconditionFailed],
			Message: "Someone changed it after you opened the page, so nothing was done. Open it again, then decide.",
		}
	case errors.As(err, &refused):
		p = problem{
			Status: refused.Status, Heading: cmp.Or(titles[refused.Status], "Something went wrong"),
			Message: sentence(refused.Err.Message),
		}
	case codeOf(err) == "" && v.signedIn == nil:
		p = problem{
			Status: http.StatusServiceUnavailable, Heading: titles[http.StatusServiceUnavailable],
			Message: "Your session couldn’t be checked. Try again in a moment.",
		}
	default:
		p = problem{
			Status: http.StatusInternalServerError, Heading: "Something went wrong",
			Message: "The console can’t show this page. The server’s log says why.",
		}
	}
	if errors.As(err, new(unfinishedError)) && p.Status >= http.StatusInternalServerError {
		p.Heading, p.Resumes = "This may not be finished", true
	}
	return p
}

var titles = map[int]string{
	http.StatusBadRequest:         "That isn’t valid",
	http.StatusForbidden:          "Not allowed",
	http.StatusNotFound:           "Not found",
	http.StatusConflict:           "That isn’t possible now",
	http.StatusPreconditionFailed: "Someone else changed it",
	http.StatusServiceUnavailable: "The store doesn’t respond",
}

// limitedBy is for a key or an address that has reached its limit.
func limitedBy(err *client.RateLimitError) problem {
	seconds := int64((err.RetryAfter + time.Second - 1) / time.Second)
	p := problem{
		Status: http.StatusTooManyRequests, Heading: "Too many requests",
		Message: "The limit of requests per minute is reached. Pages of the console count too.",
		Until:   animalstore.At(err.Reset), Seconds: max(1, seconds),
	}
	switch codeOf(err) {
	case animalstore.KeyBanned:
		p.Heading = "This key is banned"
		p.Message = "This key ignored its rate limit. Wait until the ban ends, or ask an operator to lift it."
	case animalstore.DailyQuotaExceeded:
		p.Message = "The limit of requests per day (UTC) is reached. Pages of the console count too."
	}
	return p
}

// formState is what the forms that change something have in common.
type formState struct {
	Once      string // makes it take effect once
	ETag      string // of the version that it changes
	Problem   formError
	Conflicts []conflict
}

// refuse notes why the change of a form was refused. If someone else made a change, these
// are the fields of the version with this ETag. It reports false if none differs: the form
// was sent twice, or someone made the same change.
func (f *formState) refuse(wrong formError, etag string, fields ...conflict) bool {
	f.Problem = wrong
	if wrong.Status != http.StatusPreconditionFailed {
		return true
	}
	f.ETag = etag
	f.Conflicts = slices.DeleteFunc(fields, func(c conflict) bool { return c.Mine == c.Theirs })
	return len(f.Conflicts) > 0
}

// conflict is a field whose value in the form differs from the one someone else has saved.
type conflict struct{ Field, Mine, Theirs string }

// formError is why a form was refused.
type formError struct {
	Field   string // the name of the input; "" if it isn't about one
	Message string // "" if someone else made a change
	Status  int    // of the page that shows it; 0: there is no error
}

// At reports whether the error is about this input.
func (e formError) At(field string) bool { return e.Message != "" && e.Field == field }

// status is that of a page with the form.
func (e formError) status() int { return cmp.Or(e.Status, http.StatusOK) }

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

// formProblem returns why a form was refused, if it can be fixed.
func formProblem(err error) (wrong formError, ok bool) {
	var coded *animalstore.Error
	if !errors.As(err, &coded) {
		return formError{}, false
	}
	status, message := http.StatusBadRequest, coded.Message
	var refused *client.Error
	if errors.As(err, &refused) {
		status = refused.Status
	} else if coded.Code != animalstore.ValidationFailed { // otherwise it wasn't sent
		return formError{}, false
	}
	switch status {
	case http.StatusPreconditionFailed:
		return formError{Status: status}, true
	case http.StatusUnprocessableEntity: // the Idempotency-Key was used
		message = "this form was already sent with other values; to send these too, send it again"
	case http.StatusBadRequest, http.StatusConflict:
	default:
		return formError{}, false
	}
	first, _, _ := strings.Cut(message, " ")
	wrong = formError{inputOf[first], sentence(message), status}
	var own *fieldError
	if errors.As(err, &own) {
		wrong.Field = own.field
	}
	return wrong, true
}

// filterProblem returns what is wrong with a filter. An error about something else is
// returned as it is.
func filterProblem(err error) (wrong formError, other error) {
	if !errors.As(err, new(*fieldError)) {
		return formError{}, err
	}
	wrong, _ = formProblem(err)
	return wrong, nil
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
