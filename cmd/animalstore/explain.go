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
	"animalstore/internal/keys"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"
)

// explain turns an error of the client into a message for the person at the
// command line: what happened, why, and what to do next.
func (c *connection) explain(ctx context.Context, key string, err error) error {
	if err == nil || errors.As(err, new(usageError)) || errors.As(err, new(cliError)) ||
		errors.As(err, new(petfile.Error)) || errors.As(err, new(petfile.MismatchError)) {
		return err
	}
	text, code := c.explanation(ctx, key, err)
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

// repeatable is the error of a request that can be repeated with its idempotency
// key.
type repeatable struct {
	error
	key string
}

func (r repeatable) Unwrap() error { return r.error }

// explanation is "" for an error that has nothing to do with the server.
func (c *connection) explanation(ctx context.Context, key string, err error) (text string, code int) {
	var (
		limit    *client.RateLimitError
		response *client.ResponseError
		coded    *animalstore.Error
	)
	switch {
	case ctx.Err() != nil:
		return "stopped before it was done", exitError
	case errors.As(err, &limit):
		return explainLimit(limit), exitLimited
	case errors.As(err, &coded):
		return c.explainCoded(key, err, coded)
	case errors.As(err, &response):
		return c.explainResponse(response), exitError
	}
	return c.explainNetwork(err), exitError
}

func explainLimit(e *client.RateLimitError) string {
	text := lowerFirst(limitReached(e))
	if e.Window == client.WindowBan {
		text = "the key is banned for a while, because it kept sending requests after it was told to wait"
	}
	switch {
	case !e.Reset.IsZero():
		text += fmt.Sprintf(", until %s UTC", terminal.DateTime(e.Reset))
	case e.RetryAfter == 0:
		return text + ". Try again later, or with --wait"
	}
	next := `. Try again then, or use --wait to let the command wait`
	if e.Window == client.WindowBan {
		next = `. Wait until then (--wait does), or have the ban lifted with "animalstore keys unban"`
	}
	return text + fmt.Sprintf(" (in %s)", terminal.Duration(e.RetryAfter)) + next
}

// limitReached says which limit is used up.
func limitReached(e *client.RateLimitError) string {
	switch e.Window {
	case client.WindowMinute:
		return "This minute's " + requestsAre(e.Limit) + " used up"
	case client.WindowDay:
		return "Today's (UTC) " + requestsAre(e.Limit) + " used up"
	case client.WindowBan:
		return "The key is banned for a while"
	}
	return "The server asks to wait"
}

func requestsAre(n int64) string {
	switch n {
	case 0: // the server didn't say
		return "requests are"
	case 1:
		return "only request is"
	}
	return fmt.Sprintf("%d requests are", n)
}

// explainCoded explains an error that the service returned.
func (c *connection) explainCoded(key string, err error, coded *animalstore.Error) (string, int) {
	status, request := 0, ""
	var refused *client.Error
	if errors.As(err, &refused) {
		status, request = refused.Status, refused.RequestID
	}
	text := terminal.Visible(coded.Message)
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("the server at %s refuses the key in %s: %s%s", c.url, keyVariable, text, keyHint(key)), exitCredential
	case status == http.StatusForbidden:
		return text + `. Create a key that has it with "animalstore keys create --permissions"`, exitCredential
	case status == http.StatusNotFound, coded.Code == animalstore.PetNotFound:
		return text, exitNotFound
	case coded.Code == animalstore.ValidationFailed, coded.Code == animalstore.InvalidParameter:
		return text, exitUsage
	case status >= 500:
		text = fmt.Sprintf("the server at %s can't do this now: %s. Try again later", c.url, text)
		if request != "" {
			text += "; the server's log has it as request " + terminal.Visible(request)
		}
	}
	return text, exitError
}

// keyHint says what can be seen from a key: the deployment it is for.
func keyHint(key string) string {
	if env := keys.Environment(key); env != "" {
		return fmt.Sprintf(". This one was created for %s", env)
	}
	if strings.HasPrefix(key, "ast_") {
		return ". This one is mistyped or cut off"
	}
	return ""
}

// explainResponse explains a response that isn't from the service.
func (c *connection) explainResponse(e *client.ResponseError) string {
	if strings.Contains(e.Excerpt, "HTTP request to an HTTPS server") {
		return fmt.Sprintf("the server at %s uses HTTPS: write https:// in --url", c.url)
	}
	text := fmt.Sprintf("the response from %s isn't from an animalstore server, or something in between changed it: status %d, %s", c.url, e.Status, rootCause(e))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins with %q)", e.Excerpt)
	}
	return text + ". Is --url right?"
}

// explainNetwork says why there was no response; "" if it is about something else.
func (c *connection) explainNetwork(err error) string {
	var (
		dns         *net.DNSError
		network     net.Error
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf(`no server responds at %s. Start one with "animalstore serve", or say where it is with --url or ANIMALSTORE_URL`, c.url)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host of %s can't be found: %s. Is --url right?", c.url, rootCause(err))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return fmt.Sprintf("the server at %s doesn't use HTTPS: write http:// in --url", c.url)
	case errors.As(err, &authority):
		return fmt.Sprintf("this machine doesn't trust the certificate of %s. If it is your own, name it with --cacert", c.url)
	case errors.As(err, &certificate):
		return fmt.Sprintf("the certificate of %s isn't valid: %s", c.url, rootCause(err))
	case errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("the server at %s doesn't respond in time. Is it running, and is --url right?", c.url)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the connection to %s failed: %s. Is the server running, and is --url right?", c.url, rootCause(err))
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

// sentence ends a text so that another can follow.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
