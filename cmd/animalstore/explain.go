package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore/client"
	"animalstore/internal/diagnose"
	"animalstore/internal/petfile"
)

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
	problem, text := diagnose.Call{URL: c.url, Key: key, KeyName: keyVariable}.Explain(ctx, err)
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
