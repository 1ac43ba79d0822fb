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

// SQLSTATEs, see PostgreSQL's appendix of error codes. A class is the first two
// characters.
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

// failed says what was being done when the driver returned err, and turns that
// into what [db.DB] promises. It is for errors of the driver alone: those of a
// caller's rule are returned as they are.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == diskFull:
		return fmt.Errorf("%s: %w: %w", doing, db.ErrFull, err)
	case errors.As(err, &refused) && isPassing(refused.Code), isConnection(err):
		return fmt.Errorf("%s: %w: %w", doing, db.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// isPassing tells a refusal that may not be one later.
func isPassing(code string) bool {
	switch code {
	case readOnlyTransaction, serializationFailure, deadlockDetected, lockNotAvailable, queryCanceled:
		return true
	}
	return strings.HasPrefix(code, connectionClass) || strings.HasPrefix(code, resourcesClass) || strings.HasPrefix(code, shutdownClass)
}

// isFarewell tells a refusal after which a connection is of no more use.
func isFarewell(err *pgconn.PgError) bool {
	return isFatal(err) || err.Code == readOnlyTransaction || strings.HasPrefix(err.Code, shutdownClass)
}

func isFatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC"
}

// isConnection tells an error of the way to the server.
func isConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, puddle.ErrClosedPool)
}

// isConflict tells a write that got in the way of another and was undone, so
// that it can be tried again at once.
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
