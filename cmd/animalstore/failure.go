package main

import (
	"errors"
	"strings"

	"animalstore"
	"animalstore/internal/db"
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

// toldError is an error with the words and the exit code it is told with.
type toldError struct {
	error
	text string
	code int
}

func (e toldError) Unwrap() error { return e.error }

// message is what a person reads of an error.
func message(err error) string {
	var told toldError
	if errors.As(err, &told) {
		return told.text
	}
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		return strings.Replace(err.Error(), coded.Error(), coded.Message, 1) // the code is for programs
	}
	return err.Error()
}

func exitCode(err error) int {
	var told toldError
	var usage usageError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &told):
		return told.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &coded) && coded.Code == animalstore.ValidationFailed:
		return exitUsage
	case errors.Is(err, db.ErrNotFound):
		return exitNotFound
	}
	return exitError
}
