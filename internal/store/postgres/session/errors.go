package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/store"
)

type class int

const (
	definite    class = iota // waiting would not mend it: what the server answered, or a fault on this side
	unavailable              // the server is away or going away
	cancelled                // the caller gave up
)

// lost are the errors of a connection that do not say so by their type.
var lost = [...]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, context.DeadlineExceeded, os.ErrDeadlineExceeded}

// classify says what an error means that came before COMMIT was sent. Nothing is durable in any class.
func classify(err error) class {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pgerrcode.IsConnectionException(pg.Code), pgerrcode.IsOperatorIntervention(pg.Code) && pg.Code != pgerrcode.QueryCanceled,
			pg.Code == pgerrcode.TooManyConnections, pg.Code == pgerrcode.IdleInTransactionSessionTimeout:
			return unavailable
		}
		return definite
	}
	if errors.Is(err, context.Canceled) {
		return cancelled
	}
	if disconnected(err) {
		return unavailable
	}
	return definite // an error of this program or of what it read: waiting would not mend it
}

// disconnected reports whether an error is the connection's and not that of what went over it.
func disconnected(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) {
		return true
	}
	for _, sentinel := range lost {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// errRights says, once, what to do about a right that the database's role lacks.
var errRights = errors.New("grants prints the statements that give each role its rights")

// Before wraps an error that came before COMMIT was sent.
func Before(verb string, err error) error {
	if err == nil {
		return nil
	}
	var parse *pgconn.ParseConfigError
	switch {
	case alreadyTyped(err), errors.As(err, &parse):
		return fmt.Errorf("%s: %w", verb, err)
	case code(err) == pgerrcode.InsufficientPrivilege && !errors.Is(err, errRights):
		return fmt.Errorf("%s: %w; %w", verb, err, errRights)
	case missingSchema(err):
		return fmt.Errorf("%s: %w: %w", verb, store.ErrNoSchema, err)
	case classify(err) == unavailable:
		return fmt.Errorf("%s: %w: %w", verb, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// alreadyTyped reports whether err carries an error of package store that says more than its cause.
func alreadyTyped(err error) bool {
	for _, sentinel := range []error{store.ErrFence, store.ErrServerChanged, store.ErrCommitUnknown, store.ErrUnavailable, store.ErrProtocol,
		store.ErrExhausted, store.ErrServiceBusy, store.ErrIntegrity, store.ErrNoSchema, store.ErrSchema, store.ErrNoNamespace,
		store.ErrConfig, store.ErrBinding, store.ErrBindRefused} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// code returns the SQLSTATE of an error, "" if it has none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Fenced reports whether the locking statement found no row and divided by zero.
func Fenced(err error) bool { return code(err) == pgerrcode.DivisionByZero }

// missingSchema reports whether the database lacks what a migration would have made.
func missingSchema(err error) bool {
	c := code(err)
	return c == pgerrcode.InvalidSchemaName || c == pgerrcode.UndefinedTable
}

// Contradicts reports whether a constraint refused the rows.
func Contradicts(err error) bool { return strings.HasPrefix(code(err), "23") }
