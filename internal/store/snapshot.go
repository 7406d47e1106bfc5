package store

import (
	"context"

	"amends/internal/ledger"
)

// PartitionState is everything of one partition that a reader sees in one snapshot. Relay and View are nil before
// the binding (S9). Rejected is how many records were rejected, as the measurements count them: kept, never counted again.
type PartitionState struct {
	Relay        *RelayPosition
	View         *ViewPosition
	Measurements Measurements
	Owned        Owned
	Rejected     int64
	Partition    ledger.Partition
}

// Snapshot reads one consistent state of a namespace. A row function that returns an error ends the iteration with it.
type Snapshot interface {
	// Partitions returns every partition in order.
	Partitions(ctx context.Context) ([]PartitionState, error)
	// ViewRows calls fn for every view row of a partition, ordered by item bytes, location bytes, status last, day, kind.
	ViewRows(ctx context.Context, p ledger.Partition, fn func(ViewRow) error) error
	// Journal calls fn for every decision of a partition below the frontier, in offset order, with quarantine evidence.
	Journal(ctx context.Context, p ledger.Partition, fn func(*ledger.Decision) error) error
	// Violations returns the stored protocol violations by partition.
	Violations(ctx context.Context) ([]Violation, error)
	// Receipts returns the receipts of a partition in order.
	Receipts(ctx context.Context, p ledger.Partition) ([]Receipt, error)
}
