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
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/keys"
)

// explain turns an error of the client into words for the person at the command
// line: what happened, why, and what to do next.
func (c *connection) explain(ctx context.Context, key string, err error) error {
	var usage usageError
	var told toldError
	if err == nil || errors.As(err, &usage) || errors.As(err, &told) {
		return err
	}
	text, code := c.inWords(ctx, key, err)
	if text == "" {
		return err
	}
	var again repeatable
	switch {
	case !errors.Is(err, client.ErrOutcomeUnknown):
	case errors.As(err, &again):
		text = sentence(text) + fmt.Sprintf(" Whether it was done is not known: repeat the command with --idempotency-key %s, and it is done once", again.key)
	default:
		text = sentence(text) + " Whether the change was made is not known: look before you repeat it"
	}
	return toldError{err, text, code}
}

// repeatable is the error of a request that can be sent again by its name.
type repeatable struct {
	error
	key string
}

func (r repeatable) Unwrap() error { return r.error }

// inWords is "" for an error that has nothing to do with the server.
func (c *connection) inWords(ctx context.Context, key string, err error) (text string, code int) {
	var (
		limit  *client.RateLimitError
		answer *client.ResponseError
		coded  *animalstore.Error
	)
	switch {
	case ctx.Err() != nil:
		return "stopped before it was done", exitError
	case errors.As(err, &limit):
		return limitInWords(limit), exitLimited
	case errors.As(err, &coded):
		return c.codedInWords(key, err, coded)
	case errors.As(err, &answer):
		return c.answerInWords(answer), exitError
	}
	return c.networkInWords(err), exitError
}

func limitInWords(e *client.RateLimitError) string {
	text := lowerFirst(limitReached(e))
	if e.Window == client.WindowBan {
		text = "the key is banned for a while, because it kept sending after it was told to wait"
	}
	switch {
	case !e.Reset.IsZero():
		text += fmt.Sprintf(", until %s UTC", e.Reset.UTC().Format(time.DateTime))
	case e.RetryAfter == 0:
		return text + ". Try again later, or with --wait"
	}
	next := `. Try again then, or let the command wait with --wait`
	if e.Window == client.WindowBan {
		next = `. Wait till then (--wait does), or have it lifted with "animalstore keys unban"`
	}
	return text + fmt.Sprintf(" (in %s)", span(e.RetryAfter)) + next
}

// codedInWords tells what the service refused.
func (c *connection) codedInWords(key string, err error, coded *animalstore.Error) (string, int) {
	status, request := 0, ""
	var refused *client.Error
	if errors.As(err, &refused) {
		status, request = refused.Status, refused.RequestID
	}
	text := visible(coded.Message)
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("the server at %s refuses the key in %s: %s%s", c.url, keyVariable, text, madeFor(key)), exitCredential
	case status == http.StatusForbidden:
		return text + `. Make a key that has it with "animalstore keys create --permissions"`, exitCredential
	case status == http.StatusNotFound, coded.Code == animalstore.PetNotFound:
		return text, exitNotFound
	case coded.Code == animalstore.ValidationFailed, coded.Code == animalstore.InvalidParameter:
		return text, exitUsage
	case status >= 500:
		text = fmt.Sprintf("the server at %s cannot do this now: %s. Try again later", c.url, text)
		if request != "" {
			text += "; in the server's log this is request " + visible(request)
		}
	}
	return text, exitError
}

// madeFor tells which deployment a key is for, as far as it shows.
func madeFor(key string) string {
	if env := keys.Environment(key); env != "" {
		return fmt.Sprintf(". This one was made for %s", env)
	}
	if strings.HasPrefix(key, "ast_") {
		return ". This one is mistyped or cut off"
	}
	return ""
}

// answerInWords tells of an answer that is not the service's.
func (c *connection) answerInWords(e *client.ResponseError) string {
	if strings.Contains(e.Excerpt, "HTTP request to an HTTPS server") {
		return fmt.Sprintf("the server at %s speaks HTTPS: write https:// in --url", c.url)
	}
	text := fmt.Sprintf("what answers at %s is no animalstore server, or something is in between: status %d, %s", c.url, e.Status, rootCause(e))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins %q)", e.Excerpt)
	}
	return text + ". Is --url right?"
}

// networkInWords tells why there was no answer, or "" if it is about something
// else.
func (c *connection) networkInWords(err error) string {
	var (
		dns         *net.DNSError
		network     net.Error
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf(`no server answers at %s. Start one with "animalstore serve", or say where it is with --url or ANIMALSTORE_URL`, c.url)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host of %s is not found: %s. Is --url right?", c.url, rootCause(err))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return fmt.Sprintf("the server at %s does not speak HTTPS: write http:// in --url", c.url)
	case errors.As(err, &authority):
		return fmt.Sprintf("the certificate of %s is not one that this machine trusts. If it is your own, name it with --cacert", c.url)
	case errors.As(err, &certificate):
		return fmt.Sprintf("the certificate of %s is not good: %s", c.url, rootCause(err))
	case errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("the server at %s does not answer in time. Is it running, and --url right?", c.url)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the connection to %s failed: %s. Is the server running, and --url right?", c.url, rootCause(err))
	}
	return ""
}

// rootCause is the innermost error's text: those around it say in what function
// of the client it was.
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

// sentence ends a text that another follows.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
