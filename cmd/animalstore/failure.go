package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"
)

// Exit codes, for scripts.
const (
	exitError      = 1
	exitUsage      = 2
	exitCredential = 4
	exitNotFound   = 5
	exitLimited    = 6
)

// cliError is an error with its own message and exit code.
type cliError struct {
	error
	text string
	code int
}

func (e cliError) Unwrap() error { return e.error }

// message is what a person reads of an error.
func message(err error) string {
	var worded cliError
	var file petfile.Error
	var mismatch petfile.MismatchError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &worded):
		return worded.text
	case errors.As(err, &file), errors.As(err, &mismatch):
		return terminal.Visible(err.Error())
	case errors.As(err, &coded):
		return coded.Message // the code is for programs
	}
	return err.Error()
}

func exitCode(err error) int {
	var worded cliError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &worded):
		return worded.code
	case errors.As(err, new(cli.UsageError)), errors.As(err, new(petfile.MismatchError)):
		return exitUsage
	case errors.As(err, &coded) && coded.Code == animalstore.ValidationFailed:
		return exitUsage
	case errors.Is(err, db.ErrNotFound):
		return exitNotFound
	}
	return exitError
}

// repeatable is the error of a request that can be repeated with its idempotency key.
type repeatable struct {
	error
	key string
}

func (r repeatable) Unwrap() error { return r.error }

// explain turns an error of a call into one with a message for the person at the command
// line: what happened, why, and what to do next. Errors that have nothing to do with the
// server stay as they are.
func (c *connection) explain(ctx context.Context, key string, err error) error {
	if err == nil || errors.As(err, new(cli.UsageError)) || errors.As(err, new(cliError)) ||
		errors.As(err, new(petfile.Error)) || errors.As(err, new(petfile.MismatchError)) {
		return err
	}
	text, code := c.reason(ctx, key, err)
	if text == "" {
		return err
	}
	var again repeatable
	switch {
	case !errors.Is(err, client.ErrOutcomeUnknown):
	case errors.As(err, &again):
		text = sentence(text) + fmt.Sprintf(" It is unknown whether it was done: repeat the command with --idempotency-key %s, and it is done only once", again.key)
	default:
		text = sentence(text) + " It is unknown whether the change was made: check before you repeat it"
	}
	return cliError{err, text, code}
}

// sentence ends a text so that another can follow.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// reason says why a call failed and what to do about it, and returns the exit code. The
// text is "" if it isn't about the server.
func (c *connection) reason(ctx context.Context, key string, err error) (text string, code int) {
	var (
		limit    *client.RateLimitError
		response *client.ResponseError
		coded    *animalstore.Error
	)
	switch {
	case ctx.Err() != nil:
		return "stopped before it was done", exitError
	case errors.As(err, &limit):
		return limitReason(limit), exitLimited
	case errors.As(err, &coded):
		return c.codedReason(key, err, coded)
	case errors.As(err, &response):
		return c.responseReason(response), exitError
	}
	return c.networkReason(err), exitError
}

func limitReason(e *client.RateLimitError) string {
	text := limitReached(e)
	text = strings.ToLower(text[:1]) + text[1:]
	advice := ". Try again then, or use --wait to let the command wait"
	if e.Window == client.WindowBan {
		text = "the key is banned for a while, because it kept sending requests after it was told to wait"
		advice = `. Wait until then (--wait does), or have the ban lifted with "animalstore keys unban"`
	}
	switch {
	case !e.Reset.IsZero():
		text += fmt.Sprintf(", until %s UTC", terminal.DateTime(e.Reset))
	case e.RetryAfter == 0:
		return text + ". Try again later, or with --wait"
	}
	return text + fmt.Sprintf(" (in %s)", terminal.Duration(e.RetryAfter)) + advice
}

// limitReached says which limit is reached, as a sentence without its full stop.
func limitReached(e *client.RateLimitError) string {
	requests := fmt.Sprintf("%d requests are", e.Limit)
	switch e.Limit {
	case 0: // the server didn't say
		requests = "requests are"
	case 1:
		requests = "only request is"
	}
	switch e.Window {
	case client.WindowMinute:
		return "This minute's " + requests + " used up"
	case client.WindowDay:
		return "Today's (UTC) " + requests + " used up"
	case client.WindowBan:
		return "The key is banned for a while"
	}
	return "The server asks to wait"
}

// codedReason is for an error that the service returned.
func (c *connection) codedReason(key string, err error, coded *animalstore.Error) (text string, code int) {
	status, request := 0, ""
	var refused *client.Error
	if errors.As(err, &refused) {
		status, request = refused.Status, refused.RequestID
	}
	text = terminal.Visible(coded.Message)
	switch {
	case status == http.StatusUnauthorized:
		return c.keyRefused(key, text), exitCredential
	case status == http.StatusForbidden:
		return text + `. Create a key that has it with "animalstore keys create --permissions"`, exitCredential
	case status == http.StatusNotFound, coded.Code == animalstore.PetNotFound:
		return text, exitNotFound
	case coded.Code == animalstore.ValidationFailed, coded.Code == animalstore.InvalidParameter:
		return text, exitUsage
	case status >= 500:
		text = fmt.Sprintf("the server at %s can't do this now: %s. Try again later", c.address(), text)
		if request != "" {
			text += "; the server's log has it as request " + terminal.Visible(request)
		}
	}
	return text, exitError
}

// keyRefused never shows the key, only what can be seen from it: the deployment it is for.
func (c *connection) keyRefused(key, why string) string {
	env := keys.Environment(key)
	if env == "" && strings.HasPrefix(key, "ast_") {
		return "the key in " + keyVariable + " is mistyped or cut off"
	}
	text := fmt.Sprintf("the server at %s refuses the key in %s: %s", c.address(), keyVariable, why)
	if env != "" {
		text += fmt.Sprintf(". This one was created for %s", env)
	}
	return text
}

// responseReason is for a response that isn't from the service.
func (c *connection) responseReason(e *client.ResponseError) string {
	if strings.Contains(e.Excerpt, "HTTP request to an HTTPS server") {
		return fmt.Sprintf("the server at %s uses HTTPS: write https:// in --url", c.address())
	}
	text := fmt.Sprintf("the response from %s isn't from an animalstore server, or something in between changed it: status %d, %s", c.address(), e.Status, rootCause(e))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins with %q)", e.Excerpt)
	}
	return text + ". Is --url right?"
}

// networkReason says why there was no response.
func (c *connection) networkReason(err error) string {
	var (
		dns         *net.DNSError
		network     net.Error
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	url := c.address()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf(`no server responds at %s. Start one with "animalstore serve", or say where it is with --url or ANIMALSTORE_URL`, url)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host of %s can't be found: %s. Is --url right?", url, rootCause(err))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return fmt.Sprintf("the server at %s doesn't use HTTPS: write http:// in --url", url)
	case errors.As(err, &authority):
		return fmt.Sprintf("this machine doesn't trust the certificate of %s. If it is your own, name it with --cacert", url)
	case errors.As(err, &certificate):
		return fmt.Sprintf("the certificate of %s isn't valid: %s", url, rootCause(err))
	case errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("the server at %s doesn't respond in time. Is it running, and is --url right?", url)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the connection to %s failed: %s. Is the server running, and is --url right?", url, rootCause(err))
	}
	return ""
}

// rootCause is the text of the innermost error: the ones around it name functions
// of the client.
func rootCause(err error) string {
	for {
		switch e := err.(type) {
		case *client.Error:
			return e.Err.Message
		case interface{ Unwrap() error }:
			inner := e.Unwrap()
			if inner == nil {
				return err.Error()
			}
			err = inner
		case interface{ Unwrap() []error }:
			err = e.Unwrap()[0]
		default:
			return err.Error()
		}
	}
}
