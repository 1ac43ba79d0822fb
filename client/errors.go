package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"animalstore"
)

// ErrNotModified is returned when the ETag in [IfNoneMatch] is still current.
var ErrNotModified = errors.New("not modified")

// ErrOutcomeUnknown is in the chain of an error (errors.Is) when a change was sent
// but its response was lost, so it may or may not have been made. A change that
// failed without this error was not made.
var ErrOutcomeUnknown = errors.New("it is unknown whether the change was made")

// Error is an error response of the service. Its code and message are in the
// [*animalstore.Error] it wraps.
type Error struct {
	Operation string // the method that was called, such as "createPet"
	Request   string // its HTTP method and full URL
	Status    int    // of HTTP
	RequestID string // finds the request with [Client.ListFailures] and in the server's log
	Err       *animalstore.Error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s: %v", e.Operation, e.Request, e.Err)
	if e.Status >= 500 && e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Window is the kind of limit that was reached.
type Window string

const (
	WindowMinute Window = "minute" // the plan's requests per minute
	WindowDay    Window = "day"    // the plan's requests per calendar day in UTC
	WindowBan    Window = "ban"    // the key is banned for ignoring 429 responses
)

// RateLimitError says which limit was reached and how long to wait. It wraps the coded
// error of the service. If the client already knew about the limit and sent nothing, it
// has the code that the service would have used.
type RateLimitError struct {
	Window     Window        // "" if the response was not from the service
	Limit      int64         // the number of requests in the window; 0 if unknown
	Reset      time.Time     // when the window ends, by the server's clock; zero if unknown
	RetryAfter time.Duration // the time until Reset when the error occurred
	Err        error
}

func (e *RateLimitError) Error() string { return e.Err.Error() }
func (e *RateLimitError) Unwrap() error { return e.Err }

var windowOf = map[animalstore.Code]Window{
	animalstore.RateLimitExceeded:  WindowMinute,
	animalstore.DailyQuotaExceeded: WindowDay,
	animalstore.KeyBanned:          WindowBan,
}

// ResponseError means that a response can't be from the service: a proxy's page, an
// incomplete body, or another server's response.
type ResponseError struct {
	Operation   string // as in [Error]
	Request     string // as in [Error]
	Status      int
	ContentType string
	Excerpt     string // the beginning of the body
	Err         error  // what is wrong with the response
}

func (e *ResponseError) Error() string {
	text := fmt.Sprintf("%s: %s: unexpected response with status %d: %v", e.Operation, e.Request, e.Status, e.Err)
	if e.Excerpt != "" {
		text += fmt.Sprintf(": %q", e.Excerpt)
	}
	return text
}

func (e *ResponseError) Unwrap() error { return e.Err }

// excerptLength is how much of a response an error may quote, in bytes.
const excerptLength = 200

// excerpt returns the beginning of an untrusted text, on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 4*excerptLength)], "?")), " ")
	if len(text) > excerptLength {
		text = strings.ToValidUTF8(text[:excerptLength], "") + "…"
	}
	return text
}

// notSent returns the error of a call that was not sent because of a known limit.
func notSent(limit *RateLimitError, wait time.Duration) *RateLimitError {
	e := *limit
	e.RetryAfter = wait
	code, message := animalstore.RateLimitExceeded, "rate limit reached"
	switch e.Window {
	case WindowMinute:
		message = fmt.Sprintf("limit of %d requests per minute reached", e.Limit)
	case WindowDay:
		code, message = animalstore.DailyQuotaExceeded, fmt.Sprintf("limit of %d requests per day (UTC) reached", e.Limit)
	case WindowBan:
		code, message = animalstore.KeyBanned, "this key is banned"
	}
	e.Err = animalstore.Errorf(code, "%s, so nothing was sent: retry in %v", message, wait.Round(time.Second))
	return &e
}
