package showcase

import (
	"context"
	"fmt"
	"time"

	"amends/internal/ledger"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/verify"
)

// Pipeline is a running namespace.
type Pipeline interface {
	// Ends returns the end offset of each source partition.
	Ends(ctx context.Context) ([]ledger.Offset, error)
	// Load publishes a jsonl file under the loader's guard.
	Load(ctx context.Context, path string) error
	// Snapshot reads one consistent state of the namespace.
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
	// Verify runs one quiesced verification.
	Verify(ctx context.Context) (*verify.Report, error)
}

// Waiting for the view.
const (
	lookFirst  = time.Millisecond
	lookAtMost = 50 * time.Millisecond
	stallAfter = 60 * time.Second // without any movement
)

// StalledError says that the view did not reach the records that were loaded.
type StalledError struct {
	State store.PartitionState
	End   ledger.Offset
}

// Error names the partition and how far it got.
func (e *StalledError) Error() string {
	return fmt.Sprintf("wait for the view: partition %d stands still: %d of %d source records decided, sequence %d committed",
		e.State.Partition, e.State.Owned.Frontier, e.End, e.State.Owned.Sequence)
}

// await waits until everything below ends is decided and its outputs are in the view; it tells progress how many records
// are decided and how many outputs applied. It fails with *StalledError once nothing has moved for stallAfter.
func await(ctx context.Context, p Pipeline, ends []ledger.Offset, progress func(records, outputs int64)) error {
	var last int64
	moved := time.Now()
	for wait := lookFirst; ; wait = min(2*wait, lookAtMost) {
		behind, records, outputs, err := look(ctx, p, ends)
		if err != nil {
			return err
		}
		progress(records, outputs)
		if behind == nil {
			return nil
		}
		if records+outputs > last {
			last, moved, wait = records+outputs, time.Now(), lookFirst
		}
		if time.Since(moved) > stallAfter {
			return &StalledError{State: *behind, End: ends[behind.Partition]}
		}
		if pause.For(ctx, wait) != nil {
			return context.Cause(ctx)
		}
	}
}

// look returns the first partition that is not there yet, nil for none, and how much is done in all.
func look(ctx context.Context, p Pipeline, ends []ledger.Offset) (behind *store.PartitionState, records, outputs int64, err error) {
	err = p.Snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		for i := range states {
			state := &states[i]
			records += int64(state.Owned.Frontier)
			if state.View != nil {
				outputs += int64(state.View.Sequence)
			}
			late := int64(state.Owned.Frontier) < int64(ends[i]) || state.View == nil || state.View.Sequence < state.Owned.Sequence
			if late && behind == nil {
				behind = state
			}
		}
		return nil
	})
	return behind, records, outputs, err
}
