package store

import (
	"errors"

	"amends/internal/ledger"
)

// Errors on which callers branch. Stores wrap them; compare with errors.Is.
var (
	// ErrFence: the token, term, nonce or position given is not the installed one. The caller retires (exit 10).
	ErrFence = errors.New("ownership lost")
	// ErrServerChanged: the connection reaches another server history than the token's (a promotion, another system).
	// Nothing was sent. The caller drops its cache and claims again under a still valid assignment (S12).
	ErrServerChanged = errors.New("the database server is another one than at the claim")
	// ErrCommitUnknown: the outcome of a commit, or of a statement that commits, is not known. The caller drops its
	// cache and reads durable state under the row lock before anything else (S12).
	ErrCommitUnknown = errors.New("commit outcome unknown")
	// ErrNotReplicated wraps ErrCommitUnknown: the server committed but warned 01000, not replicated (S12).
	ErrNotReplicated = errors.New("committed but not replicated")
	// ErrUnavailable: nothing was sent; the service is away. A role waits, a command gives up after 20 s (S12).
	ErrUnavailable = errors.New("database unavailable")
	// ErrAddress: what was given does not say where a database is.
	ErrAddress = errors.New("not postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	// ErrProtocol: a receipt, page or binding contradicts what is stored; nothing was written. A view reads its
	// rows and decides again; a relay stops for an operator (exit 11).
	ErrProtocol = errors.New("protocol violation")
	// ErrExhausted: a version, sequence or epoch is at 2^63-1; nothing was written (S8, exit 1).
	ErrExhausted = errors.New("counter exhausted")
	// ErrServiceBusy: another holder's lease or guard is in force. A standby waits.
	ErrServiceBusy = errors.New("held by another process")
	// ErrIntegrity: stored bytes fail their checksum or contradict each other (exit 11).
	ErrIntegrity = errors.New("stored data contradicts itself")
	// ErrNoSchema: the database has no amends schema (exit 13).
	ErrNoSchema = errors.New("the database has no amends schema")
	// ErrSchema: the schema's migrations are not this binary's: older, newer, with a gap or another checksum (exit 13).
	ErrSchema = errors.New("schema does not fit this binary")
	// ErrNoNamespace: the namespace is not in this database (exit 13).
	ErrNoNamespace = errors.New("no such namespace in this database")
	// ErrConfig: the namespace exists with another configuration digest or storage format (exit 13).
	ErrConfig = errors.New("configuration differs from the namespace's")
	// ErrBinding: the namespace is bound to another output, or not bound (exit 13).
	ErrBinding = errors.New("output binding differs from the namespace's")
	// ErrBindRefused: S9 forbids this binding: the output is in use, is a source, or the namespace has delivered (exit 13).
	ErrBindRefused = errors.New("binding refused")
)

// Resolved returns an error that reads as err and is no longer one to branch on: what an unknown outcome was has been read
// since (S12), so that only what follows from it counts. Nil for nil.
func Resolved(err error) error {
	if err == nil {
		return nil
	}
	return resolved{err}
}

type resolved struct{ err error }

func (r resolved) Error() string { return r.err.Error() }

// DamagedRow is a view row whose stored columns are not what any row holds; it wraps ErrIntegrity. Verification names it.
type DamagedRow struct {
	Err error
	ID  ledger.OutputID
}

func (e *DamagedRow) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the row.
func (e *DamagedRow) Unwrap() error { return e.Err }
