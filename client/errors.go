package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"animalstore"
)

// ErrNotModified is returned when what you have, by its [IfNoneMatch], is what
// there is.
var ErrNotModified = errors.New("not modified")

// ErrOutcomeUnknown is in the chain of an error (errors.Is) when a change was
// sent and nobody knows whether it was made: its answer was lost. A change that
// failed without it was not made.
var ErrOutcomeUnknown = errors.New("whether the change was made is not known")

// Error is an error that the service answered with. Its code and message are in
// the [*animalstore.Error] it wraps.
type Error struct {
	Operation string // such as "createPet"
	Status    int    // of HTTP
	RequestID string // names the request in the server's log
	Err       *animalstore.Error
}

func (e *Error) Error() string {
	text := e.Operation + ": " + e.Err.Error()
	if e.Status >= 500 && e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Window is which limit a request ran into.
type Window string

const (
	WindowMinute Window = "minute" // as many requests a minute as the plan gives
	WindowDay    Window = "day"    // as many a day, by the calendar in UTC
	WindowBan    Window = "ban"    // the key is banned for sending on after 429
)

// RateLimitError tells that a limit is reached, and when to come back. It wraps
// the coded error of the service. Where the client knew of the limit and sent
// nothing, the code is the one the service would have used.
type RateLimitError struct {
	Window     Window        // "" if the answer was not the service's own
	Limit      int64         // how many requests the window has; 0 if not told
	Reset      time.Time     // when it is over, by the server's clock; zero if not told
	RetryAfter time.Duration // how long that was from when the error was made
	Err        error
}

func (e *RateLimitError) Error() string { return e.Err.Error() }
func (e *RateLimitError) Unwrap() error { return e.Err }

var windowOf = map[animalstore.Code]Window{
	animalstore.RateLimitExceeded:  WindowMinute,
	animalstore.DailyQuotaExceeded: WindowDay,
	animalstore.KeyBanned:          WindowBan,
}

var codeOf = map[Window]animalstore.Code{
	"":           animalstore.RateLimitExceeded,
	WindowMinute: animalstore.RateLimitExceeded,
	WindowDay:    animalstore.DailyQuotaExceeded,
	WindowBan:    animalstore.KeyBanned,
}

// AnswerError is an answer that this service does not give: a proxy's page, half
// a body, or something else at that address altogether.
type AnswerError struct {
	Operation   string
	Status      int
	ContentType string
	Excerpt     string // how the body begins
	Err         error  // what is wrong with it
}

func (e *AnswerError) Error() string {
	text := fmt.Sprintf("%s: an answer with status %d that the service does not give: %v", e.Operation, e.Status, e.Err)
	if e.Excerpt != "" {
		text += fmt.Sprintf(": %q", e.Excerpt)
	}
	return text
}

func (e *AnswerError) Unwrap() error { return e.Err }

// excerptLength bounds what of an answer gets into an error, in bytes.
const excerptLength = 200

// excerpt is the beginning of a text from outside, fit for one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 4*excerptLength)], "?")), " ")
	if len(text) > excerptLength {
		text = strings.ToValidUTF8(text[:excerptLength], "") + "…"
	}
	return text
}

// notSent is the error of a call that a limit stopped before it was sent.
func notSent(limit *RateLimitError, wait time.Duration) *RateLimitError {
	e := *limit
	e.RetryAfter = wait
	message := "a limit is reached"
	switch e.Window {
	case WindowMinute:
		message = fmt.Sprintf("the %d requests of this minute are used up", e.Limit)
	case WindowDay:
		message = fmt.Sprintf("the %d requests of this day (UTC) are used up", e.Limit)
	case WindowBan:
		message = "this key is banned for a while"
	}
	e.Err = animalstore.Errorf(codeOf[e.Window], "%s, as an answer before told, so this was not sent: wait %v", message, wait.Round(time.Second))
	return &e
}
