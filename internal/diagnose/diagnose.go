// Package diagnose says in plain words why a call of the service failed, and what the
// person at the command line can do about it.
package diagnose

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
	"animalstore/internal/terminal"
)

// Problem is a reason for a failed call.
type Problem int

const (
	Unrelated            Problem = iota // it has nothing to do with the service
	Stopped                             // the caller gave up
	LimitReached                        // the key's requests are used up
	LimitEndUnknown                     // the same, but for an unknown time
	Banned                              // the key is banned
	KeyRefused                          // the key isn't accepted
	PermissionMissing                   // the key isn't allowed to do this
	NotFound                            // the resource doesn't exist
	Invalid                             // the request can't work
	Refused                             // the service refused it for another reason
	ServerFailed                        // the service has a problem
	NoServer                            // nothing listens at the address
	HostUnknown                         // the host can't be found
	NeedsHTTPS                          // http:// was used for a server with HTTPS
	NeedsHTTP                           // https:// was used for a server without
	CertificateUntrusted                // the certificate's issuer is unknown
	CertificateInvalid                  // the certificate is wrong in another way
	NoResponse                          // there was no response in time
	ConnectionFailed                    // the connection failed in another way
	NotOurServer                        // the response isn't from the service
)

// Call is a call of the service, for messages about it.
type Call struct {
	URL     string // of the server
	Key     string // the API key; no message contains it
	KeyName string // where the key is from
}

// Explain returns why err occurred, as the beginning of a sentence. The text is ""
// if the problem is Unrelated.
func (c Call) Explain(ctx context.Context, err error) (Problem, string) {
	var (
		limit    *client.RateLimitError
		response *client.ResponseError
		coded    *animalstore.Error
	)
	switch {
	case ctx.Err() != nil:
		return Stopped, "stopped before it was done"
	case errors.As(err, &limit):
		return explainLimit(limit)
	case errors.As(err, &coded):
		return c.explainCoded(err, coded)
	case errors.As(err, &response):
		return c.explainResponse(response)
	}
	return c.explainNetwork(err)
}

func explainLimit(e *client.RateLimitError) (Problem, string) {
	problem, text := LimitReached, Limit(e)
	text = strings.ToLower(text[:1]) + text[1:]
	if e.Window == client.WindowBan {
		problem, text = Banned, "the key is banned for a while, because it kept sending requests after it was told to wait"
	}
	switch {
	case !e.Reset.IsZero():
		text += fmt.Sprintf(", until %s UTC", terminal.DateTime(e.Reset))
	case e.RetryAfter == 0:
		return LimitEndUnknown, text
	}
	return problem, text + fmt.Sprintf(" (in %s)", terminal.Duration(e.RetryAfter))
}

// Limit says which limit is reached, as a sentence without its full stop.
func Limit(e *client.RateLimitError) string {
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

// explainCoded explains an error that the service returned.
func (c Call) explainCoded(err error, coded *animalstore.Error) (Problem, string) {
	status, request := 0, ""
	var refused *client.Error
	if errors.As(err, &refused) {
		status, request = refused.Status, refused.RequestID
	}
	text := terminal.Visible(coded.Message)
	switch {
	case status == http.StatusUnauthorized:
		return KeyRefused, fmt.Sprintf("the server at %s refuses the key in %s: %s%s", c.URL, c.KeyName, text, keyHint(c.Key))
	case status == http.StatusForbidden:
		return PermissionMissing, text
	case status == http.StatusNotFound, coded.Code == animalstore.PetNotFound:
		return NotFound, text
	case coded.Code == animalstore.ValidationFailed, coded.Code == animalstore.InvalidParameter:
		return Invalid, text
	case status >= 500:
		text = fmt.Sprintf("the server at %s can't do this now: %s. Try again later", c.URL, text)
		if request != "" {
			text += "; the server's log has it as request " + terminal.Visible(request)
		}
		return ServerFailed, text
	}
	return Refused, text
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
func (c Call) explainResponse(e *client.ResponseError) (Problem, string) {
	if strings.Contains(e.Excerpt, "HTTP request to an HTTPS server") {
		return NeedsHTTPS, fmt.Sprintf("the server at %s uses HTTPS", c.URL)
	}
	text := fmt.Sprintf("the response from %s isn't from an animalstore server, or something in between changed it: status %d, %s", c.URL, e.Status, RootCause(e))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins with %q)", e.Excerpt)
	}
	return NotOurServer, text
}

// explainNetwork says why there was no response.
func (c Call) explainNetwork(err error) (Problem, string) {
	var (
		dns         *net.DNSError
		network     net.Error
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return NoServer, fmt.Sprintf("no server responds at %s", c.URL)
	case errors.As(err, &dns):
		return HostUnknown, fmt.Sprintf("the host of %s can't be found: %s", c.URL, RootCause(err))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return NeedsHTTP, fmt.Sprintf("the server at %s doesn't use HTTPS", c.URL)
	case errors.As(err, &authority):
		return CertificateUntrusted, fmt.Sprintf("this machine doesn't trust the certificate of %s", c.URL)
	case errors.As(err, &certificate):
		return CertificateInvalid, fmt.Sprintf("the certificate of %s isn't valid: %s", c.URL, RootCause(err))
	case errors.As(err, &network) && network.Timeout():
		return NoResponse, fmt.Sprintf("the server at %s doesn't respond in time", c.URL)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ConnectionFailed, fmt.Sprintf("the connection to %s failed: %s", c.URL, RootCause(err))
	}
	return Unrelated, ""
}

// RootCause is the text of the innermost error: the ones around it name functions
// of the client.
func RootCause(err error) string {
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
