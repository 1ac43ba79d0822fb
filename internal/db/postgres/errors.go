package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// SQLSTATEs, from the appendix of PostgreSQL's manual. A class is a prefix.
const (
	uniqueViolation      = "23505"
	readOnlyTransaction  = "25006"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	diskFull             = "53100"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"

	connectionClass = "08"
	resourcesClass  = "53"
	shutdownClass   = "57P"
)

// failed adds what was being done to an error of the driver, and translates it into
// those of package db. Errors of a caller's function must not be passed to it.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == diskFull:
		return fmt.Errorf("%s: %w: %w", doing, db.ErrFull, err)
	case errors.As(err, &refused) && isTemporary(refused.Code), isConnection(err):
		return fmt.Errorf("%s: %w: %w", doing, db.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// isTemporary reports whether a retry may succeed.
func isTemporary(code string) bool {
	switch code {
	case readOnlyTransaction, serializationFailure, deadlockDetected, lockNotAvailable, queryCanceled:
		return true
	}
	return strings.HasPrefix(code, connectionClass) || strings.HasPrefix(code, resourcesClass) || strings.HasPrefix(code, shutdownClass)
}

// endsConnection reports whether a connection is useless after err.
func endsConnection(err *pgconn.PgError) bool {
	return isFatal(err) || err.Code == readOnlyTransaction || strings.HasPrefix(err.Code, shutdownClass)
}

func isFatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC"
}

// isConnection reports whether the server couldn't be reached or the connection broke.
func isConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, puddle.ErrClosedPool)
}

// isConflict reports whether a write conflicted with another and was rolled back, so
// that it can be retried at once.
func isConflict(err error) bool { return hasCode(err, serializationFailure, deadlockDetected) }

func hasCode(err error, codes ...string) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	for _, code := range codes {
		if refused.Code == code {
			return true
		}
	}
	return false
}
