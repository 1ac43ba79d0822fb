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
	"os"
	"strings"
	"syscall"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// message is the text of an error for people.
func message(err error) string {
	var worded cliError
	var file petfile.Error
	var coded *animalstore.Error
	switch {
	case errors.As(err, &worded):
		return worded.text
	case errors.As(err, &file):
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
	case errors.As(err, new(cli.UsageError)):
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

// incomplete is why a command ended early that another run can continue.
type incomplete struct{ error }

func (e incomplete) Unwrap() error { return e.error }

// continueWith adds the command that continues to an error, alone in the last line.
func continueWith(err error, text, command string) error {
	return cliError{err, message(err) + "\n" + text + ":\n\n" + command, exitCode(err)}
}

// sameCommand is the command that is running, with its flags and its argument. The value of
// the flag fixed is what the run has made of it, and is shown even if it wasn't in the
// command line.
func sameCommand(cmd *cobra.Command, fixed, arg string) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	command := []string{shellWord(os.Args[0]), name}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case value == "", f.Name != fixed && !cli.Given(cmd, f.Name):
		case f.Value.Type() == "bool" && value == "true":
			command = append(command, "--"+f.Name)
		default:
			command = append(command, "--"+f.Name+"="+shellWord(value))
		}
	})
	if arg != "-" && strings.HasPrefix(arg, "-") {
		command = append(command, "--")
	}
	return strings.Join(append(command, shellWord(arg)), " ")
}

// callError rewords the error of a call: what happened, why, and what to do next. Errors
// that aren't about the server stay as they are.
func (c *connection) callError(ctx context.Context, key string, err error) error {
	if err == nil || errors.As(err, new(cli.UsageError)) || errors.As(err, new(cliError)) ||
		errors.As(err, new(petfile.Error)) {
		return err
	}
	text, code := c.describeError(ctx, key, err)
	if text == "" {
		return err
	}
	if errors.Is(err, client.ErrOutcomeUnknown) {
		var again repeatable
		switch {
		case errors.As(err, new(incomplete)):
		case errors.As(err, &again):
			text += ". It may have succeeded: to retry safely, repeat the command with --idempotency-key " + again.key
		default:
			text += ". The change may have been made: check before you retry"
		}
	}
	return cliError{err, text, code}
}

// describeError says why a call failed, and returns the exit code. The text is "" if it
// isn't about the server.
func (c *connection) describeError(ctx context.Context, key string, err error) (text string, code int) {
	var (
		limit    *client.RateLimitError
		response *client.ResponseError
		coded    *animalstore.Error
	)
	switch {
	case ctx.Err() != nil:
		return "stopped", exitError
	case errors.As(err, &limit):
		return retryAdvice(limit), exitLimited
	case errors.As(err, &coded):
		return c.describeRefusal(key, err, coded)
	case errors.As(err, &response):
		return c.describeResponse(response), exitError
	}
	return c.describeNetworkError(err), exitError
}

// limitReached says which limit is reached.
func limitReached(e *client.RateLimitError) string {
	window := "minute"
	switch e.Window {
	case client.WindowMinute:
	case client.WindowDay:
		window = "day"
	case client.WindowBan:
		return "the key is banned for ignoring its limits"
	default:
		return "the server is busy"
	}
	if e.Limit == 0 { // the server didn't say
		return "request limit per " + window + " reached"
	}
	return fmt.Sprintf("limit of %s per %s reached", terminal.Count(e.Limit, "request", "requests"), window)
}

func retryAdvice(e *client.RateLimitError) string {
	text := limitReached(e) + ": retry later, or use --wait"
	if e.RetryAfter > 0 {
		text = fmt.Sprintf("%s: retry in %s, or use --wait", limitReached(e), terminal.Duration(e.RetryAfter))
	}
	if e.Window == client.WindowBan {
		text += `. "animalstore keys unban" lifts the ban`
	}
	return text
}

// describeRefusal is for an error that the service returned.
func (c *connection) describeRefusal(key string, err error, coded *animalstore.Error) (text string, code int) {
	status, request := 0, ""
	var refused *client.Error
	if errors.As(err, &refused) {
		status, request = refused.Status, refused.RequestID
	}
	text = terminal.Visible(coded.Message)
	switch {
	case status == http.StatusUnauthorized:
		return c.describeRefusedKey(key), exitCredential
	case coded.Code == animalstore.KeySuspended, coded.Code == animalstore.AddressNotAllowed:
		return text, exitCredential
	case status == http.StatusForbidden:
		return text + `. Create a key that has it with "animalstore keys create --permissions"`, exitCredential
	case status == http.StatusNotFound, coded.Code == animalstore.PetNotFound:
		return text, exitNotFound
	case coded.Code == animalstore.ValidationFailed, coded.Code == animalstore.InvalidParameter:
		return text, exitUsage
	case status >= 500:
		text = fmt.Sprintf("%s failed: %s. Retry later", c.address(), text)
		if request != "" {
			text += "; its log has details of request " + terminal.Visible(request)
		}
	}
	return text, exitError
}

// describeRefusedKey never shows the key, only the deployment that it is for.
func (c *connection) describeRefusedKey(key string) string {
	env := keys.Environment(key)
	switch {
	case env != "":
		return fmt.Sprintf("%s refused the %s key in %s: it is expired, revoked, or for another server", c.address(), env, keyVariable)
	case strings.HasPrefix(key, "ast_"):
		return "the key in " + keyVariable + " is mistyped or cut off"
	}
	return fmt.Sprintf("%s refused the key in %s: it is mistyped, expired, revoked, or for another server", c.address(), keyVariable)
}

// describeResponse is for a response that isn't from the service.
func (c *connection) describeResponse(e *client.ResponseError) string {
	if strings.Contains(e.Excerpt, "HTTP request to an HTTPS server") {
		return c.address() + " uses HTTPS: write https:// in --url"
	}
	text := fmt.Sprintf("%s isn't an animalstore server, or a proxy changed its response: status %d, %s", c.address(), e.Status, rootCause(e))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins with %q)", e.Excerpt)
	}
	return text + ". Check --url"
}

// describeNetworkError says why there was no response.
func (c *connection) describeNetworkError(err error) string {
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
		return "no server at " + url + `: start one with "animalstore serve", or set --url or ANIMALSTORE_URL`
	case errors.As(err, &dns):
		return fmt.Sprintf("the host of %s wasn't found (%s): check --url", url, rootCause(err))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return url + " doesn't use HTTPS: write http:// in --url"
	case errors.As(err, &authority):
		return "this machine doesn't trust the certificate of " + url + ". If it is your own, pass it with --cacert"
	case errors.As(err, &certificate):
		return fmt.Sprintf("the certificate of %s isn't valid: %s", url, rootCause(err))
	case errors.As(err, &network) && network.Timeout():
		return url + " didn't respond in time: check that it is running, and --url"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the connection to %s failed (%s): check that it is running, and --url", url, rootCause(err))
	}
	return ""
}

// rootCause is the text of the innermost error. Those around it name functions of the
// client.
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
