package worker

import (
	"errors"

	"amends/internal/broker"
	"amends/internal/store"
)

// Errors that end the role, beside those of store and broker that doc.go names.
var (
	// ErrIntegrity: durable state or input contradicts what this worker knows; an operator must look (exit 11).
	ErrIntegrity = errors.New("integrity stop")
	// ErrUnresolved: the outcome of a commit could not be read within its budget (S12, exit 12).
	ErrUnresolved = errors.New("commit outcome unresolved")
	// ErrRetries: an operation failed three times, or for 20 s (S12, exit 1).
	ErrRetries = errors.New("retries exhausted")
)

// outcome is the one classification of a store's answer.
type outcome uint8

const (
	acknowledged outcome = iota
	away                 // nothing was sent: wait without limit
	unknown              // read before anything else
	fenced               // retire
	moved                // another server: claim again
	terminal             // no retry can help
	failed               // definite and perhaps transient: bounded retries
)

var outcomeNames = [...]string{acknowledged: "acknowledged", away: "error", unknown: "unknown", fenced: "fenced", moved: "error", terminal: "error", failed: "error"}

// classify says what an error of the store means.
func classify(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, store.ErrCommitUnknown):
		return unknown
	case errors.Is(err, store.ErrServerChanged):
		return moved
	case errors.Is(err, store.ErrFence):
		return fenced
	case errors.Is(err, store.ErrUnavailable):
		return away
	case isTerminal(err):
		return terminal
	}
	return failed
}

func isTerminal(err error) bool {
	for _, end := range []error{store.ErrIntegrity, store.ErrProtocol, store.ErrExhausted, store.ErrNoSchema, store.ErrSchema, store.ErrNoNamespace, store.ErrConfig, ErrIntegrity} {
		if errors.Is(err, end) {
			return true
		}
	}
	return stopsTopic(err)
}

// stopsTopic reports whether err says that the topic is not the namespace's any more.
func stopsTopic(err error) bool {
	var identity *broker.IdentityError
	var outside *broker.RangeError
	return errors.As(err, &identity) || errors.As(err, &outside) || errors.Is(err, broker.ErrRefused)
}
