package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/db"
	"animalstore/internal/diagnose"
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

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// cliError is an error with its own message and exit code.
type cliError struct {
	error
	text string
	code int
}

func (e cliError) Unwrap() error { return e.error }

// message is what a person reads of an error.
func message(err error) string {
	var cli cliError
	var file petfile.Error
	var mismatch petfile.MismatchError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &cli):
		return cli.text
	case errors.As(err, &file), errors.As(err, &mismatch):
		return terminal.Visible(err.Error())
	case errors.As(err, &coded):
		return strings.Replace(err.Error(), coded.Error(), coded.Message, 1) // the code is for programs
	}
	return err.Error()
}

func exitCode(err error) int {
	var cli cliError
	var usage usageError
	var mismatch petfile.MismatchError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &cli):
		return cli.code
	case errors.As(err, &usage), errors.As(err, &mismatch):
		return exitUsage
	case errors.As(err, &coded) && coded.Code == animalstore.ValidationFailed:
		return exitUsage
	case errors.Is(err, db.ErrNotFound):
		return exitNotFound
	}
	return exitError
}

// advice is what a command adds to a failed call: what to do next, and an exit code.
var advice = map[diagnose.Problem]struct {
	text string
	code int
}{
	diagnose.LimitReached:         {". Try again then, or use --wait to let the command wait", exitLimited},
	diagnose.LimitEndUnknown:      {". Try again later, or with --wait", exitLimited},
	diagnose.Banned:               {`. Wait until then (--wait does), or have the ban lifted with "animalstore keys unban"`, exitLimited},
	diagnose.KeyRefused:           {"", exitCredential},
	diagnose.PermissionMissing:    {`. Create a key that has it with "animalstore keys create --permissions"`, exitCredential},
	diagnose.NotFound:             {"", exitNotFound},
	diagnose.Invalid:              {"", exitUsage},
	diagnose.NoServer:             {`. Start one with "animalstore serve", or say where it is with --url or ANIMALSTORE_URL`, exitError},
	diagnose.HostUnknown:          {". Is --url right?", exitError},
	diagnose.NeedsHTTPS:           {": write https:// in --url", exitError},
	diagnose.NeedsHTTP:            {": write http:// in --url", exitError},
	diagnose.CertificateUntrusted: {". If it is your own, name it with --cacert", exitError},
	diagnose.NoResponse:           {". Is it running, and is --url right?", exitError},
	diagnose.ConnectionFailed:     {". Is the server running, and is --url right?", exitError},
	diagnose.NotOurServer:         {". Is --url right?", exitError},
}

// explain turns an error of the client into a message for the person at the
// command line: what happened, why, and what to do next.
func (c *connection) explain(ctx context.Context, key string, err error) error {
	if err == nil || errors.As(err, new(usageError)) || errors.As(err, new(cliError)) ||
		errors.As(err, new(petfile.Error)) || errors.As(err, new(petfile.MismatchError)) {
		return err
	}
	problem, text := diagnose.Call{URL: c.address(), Key: key, KeyName: keyVariable}.Explain(ctx, err)
	if problem == diagnose.Unrelated {
		return err
	}
	next, known := advice[problem]
	if !known {
		next.code = exitError
	}
	text += next.text
	var again repeatable
	switch {
	case !errors.Is(err, client.ErrOutcomeUnknown):
	case errors.As(err, &again):
		text = sentence(text) + fmt.Sprintf(" It is unknown whether it was done: repeat the command with --idempotency-key %s, and it is done only once", again.key)
	default:
		text = sentence(text) + " It is unknown whether the change was made: check before you repeat it"
	}
	return cliError{err, text, next.code}
}

// repeatable is the error of a request that can be repeated with its idempotency
// key.
type repeatable struct {
	error
	key string
}

func (r repeatable) Unwrap() error { return r.error }

// sentence ends a text so that another can follow.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
