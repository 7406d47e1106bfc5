package delivery

import (
	"context"
	"errors"
	"fmt"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// Stepper is one partition's relay or view. It belongs to one goroutine.
type Stepper interface {
	// Step does the next piece of work: at most one publication or one commit. After broker.ErrUnavailable or
	// store.ErrUnavailable it may be called again; after any other error only Close.
	Step(ctx context.Context) (Progress, error)
	// Close ends what the stepper opened.
	Close()
}

// Progress says what a Step did.
type Progress struct {
	// Outputs were published or applied.
	Outputs int
	// Idle: there was nothing to do; the next Step should wait for a wake-up or a while.
	Idle bool
	// Waiting names what holds the partition back, "" if nothing does.
	Waiting string
}

// RelayStore is what a relay needs of a namespace. The position is read under its row lock.
type RelayStore interface {
	RelayPosition(ctx context.Context, p ledger.Partition) (store.RelayPosition, error)
	LastReceipt(ctx context.Context, p ledger.Partition) (*store.Receipt, error)
	Pending(ctx context.Context, p ledger.Partition, from store.RelayPosition, maxOutputs int) ([]ledger.Decision, error)
	Outbox(ctx context.Context, p ledger.Partition, sequence ledger.Sequence) (*ledger.Decision, error)
	Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error
}

// ViewStore is what a view needs of a namespace. The position is read under its row lock.
type ViewStore interface {
	ViewPosition(ctx context.Context, p ledger.Partition) (store.ViewPosition, error)
	ViewRows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error)
	ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error
}

// Producer publishes in order with one request in flight; after an error it is closed (broker.Producer).
type Producer interface {
	Produce(ctx context.Context, p ledger.Partition, messages []broker.Message) ([]ledger.Offset, error)
	Close()
}

// Reader reads by coordinates (broker.Reader).
type Reader interface {
	Seek(ctx context.Context, p ledger.Partition, at ledger.Frontier) error
	Poll(ctx context.Context) ([]broker.Fetched, error)
	Close()
}

// Topics looks at topics (broker.Admin).
type Topics interface {
	Topic(ctx context.Context, name string) (broker.Topic, error)
	Incarnation(ctx context.Context, topic string) (string, error)
	Ends(ctx context.Context, topic string) ([]ledger.Offset, error)
}

// Topic is the output topic that a namespace is bound to, with the ways to open it.
type Topic struct {
	Topics      Topics
	NewProducer func() (Producer, error)
	NewReader   func() (Reader, error)
	Name        string
	Incarnation string
	Partitions  int32
}

// identify reads the topic's id again: *broker.IdentityError if it is another one.
func (t *Topic) identify(ctx context.Context) error {
	found, err := t.Topics.Incarnation(ctx, t.Name)
	if err != nil {
		return err
	}
	if found != t.Incarnation {
		return &broker.IdentityError{Topic: t.Name, What: "incarnation", Want: t.Incarnation, Found: found}
	}
	return nil
}

// check looks at all of the topic on which the contract depends (S9).
func (t *Topic) check(ctx context.Context) error {
	found, err := t.Topics.Topic(ctx, t.Name)
	if err != nil {
		return err
	}
	return broker.CheckIdentity(found, t.Incarnation, t.Partitions)
}

// ErrUnresolved: something was sent to the database, and what became of it could not be read within the budget (S12,
// exit 12). Starting again is safe.
var ErrUnresolved = errors.New("outcome unresolved")

// StoppedError says that a partition of the view is stopped durably by a stored violation (S9, exit 11).
type StoppedError struct {
	Reason    string // of the violation, "" where it was stored before
	Offset    ledger.Offset
	Partition ledger.Partition
}

// Error names the partition, and the violation where it is known.
func (e *StoppedError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("view partition %d is stopped by a stored protocol violation", e.Partition)
	}
	return fmt.Sprintf("view partition %d stopped at output offset %d: %s", e.Partition, e.Offset, e.Reason)
}

// Unwrap makes the stop a protocol violation to errors.Is.
func (e *StoppedError) Unwrap() error { return store.ErrProtocol }

func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, broker.ErrUnavailable)
}
