package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"animalstore"
	"animalstore/internal/commandline"
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
	var usage commandline.UsageError
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

// callExitCodes are the exit codes of failed calls. All others have exitError.
var callExitCodes = map[diagnose.Problem]int{
	diagnose.LimitReached:      exitLimited,
	diagnose.LimitEndUnknown:   exitLimited,
	diagnose.Banned:            exitLimited,
	diagnose.KeyRefused:        exitCredential,
	diagnose.PermissionMissing: exitCredential,
	diagnose.NotFound:          exitNotFound,
	diagnose.Invalid:           exitUsage,
}

// explain turns an error of the client into one with a message for the person at the
// command line.
func (c *connection) explain(ctx context.Context, key string, err error) error {
	if err == nil || errors.As(err, new(commandline.UsageError)) || errors.As(err, new(cliError)) ||
		errors.As(err, new(petfile.Error)) || errors.As(err, new(petfile.MismatchError)) {
		return err
	}
	problem, text := diagnose.Call{URL: c.server().Address(), Key: key, KeyName: keyVariable}.Advise(ctx, err)
	if problem == diagnose.Unrelated {
		return err
	}
	return cliError{err, text, cmp.Or(callExitCodes[problem], exitError)}
}
