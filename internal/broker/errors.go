package broker

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

// Errors on which callers branch; compare with errors.Is.
var (
	// ErrUnavailable: the broker is away and nothing was written. A role waits, a command gives up after 20 s (S12).
	ErrUnavailable = errors.New("broker unavailable")
	// ErrUnknownOutcome: something was sent and its effect is not known. The caller looks before it acts again (S12).
	ErrUnknownOutcome = errors.New("broker outcome unknown")
	// ErrRefused: credentials, authorization or the request itself was refused; nothing was written (exit 1).
	ErrRefused = errors.New("broker refused")
	// ErrNoTopic: no topic of that name exists.
	ErrNoTopic = errors.New("no such topic")
	// ErrTopicExists: CreateTopic found the name taken; nothing was created.
	ErrTopicExists = errors.New("topic exists")
	// ErrSession: the group could not be joined or kept; the client goes on trying. The caller polls again.
	ErrSession = errors.New("group session failed")
	// ErrUnreadable: a batch is too large when decompressed. The client reads nothing more of that partition, which no
	// waiting changes; other partitions go on.
	ErrUnreadable = errors.New("batch too large to read")
	// ErrClosed: the client was closed by its owner.
	ErrClosed = errors.New("broker client closed")
)

// IdentityError says that a topic is not the one expected: What is "incarnation", "partitions", "log start" or the name
// of a topic setting. It is an integrity stop (S9, exit 11), UNAVAILABLE to verification (S10).
type IdentityError struct {
	Topic string
	What  string
	Want  string
	Found string
}

// Error names both values.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("topic %s: %s is %s, want %s", e.Topic, e.What, e.Found, e.Want)
}

// RangeError says that a partition does not hold the position asked for, or lost what had been read: history was
// truncated or the log went back. Start and End are the log's, -1 when not known. It is an integrity stop (exit 11).
type RangeError struct {
	Topic     string
	Cause     string
	Start     ledger.Offset
	End       ledger.Offset
	Position  ledger.Frontier
	Partition ledger.Partition
}

// Error names the position and the log's range.
func (e *RangeError) Error() string {
	return fmt.Sprintf("topic %s partition %d: position %d is not in the log %d..%d: %s", e.Topic, e.Partition, e.Position, e.Start, e.End, e.Cause)
}

// classify wraps the error of a read, which changes nothing: whatever is not a refusal by the broker is unavailability.
func (o *Options) classify(ctx context.Context, err error) error {
	var identity *IdentityError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &identity):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kgo.ErrClientClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return fmt.Errorf("%w: %w", ErrNoTopic, err)
	case refused(err) && !o.Security.changing(err):
		return fmt.Errorf("%w: %w%s", ErrRefused, err, advice(err))
	}
	return fmt.Errorf("%w: %w%s", ErrUnavailable, err, advice(err))
}

// refusals are the broker's answers, and what keeps this client from asking, that no waiting changes.
var refusals = []error{kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.SecurityDisabled,
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.UnsupportedVersion,
	kerr.InvalidTopicException, kerr.InvalidGroupID, kerr.InvalidSessionTimeout, errHandshake, errInClear}

// refused reports whether the broker refuses this client, for good and without effect.
func refused(err error) bool {
	for _, no := range refusals {
		if errors.Is(err, no) {
			return true
		}
	}
	return tlsExpected(err)
}

// answered reports whether the broker answered with an error that says that nothing was done.
func answered(err error) bool {
	var ke *kerr.Error
	return errors.As(err, &ke) && !ke.Retriable && !errors.Is(err, kerr.UnknownServerError)
}

// dialing reports whether err happened before a connection existed.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
