package delivery

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// receipts are acknowledged outputs without a receipt, as ranges of consecutive sequences at consecutive offsets.
type receipts struct {
	ranges  []store.Receipt
	outputs int
}

// add notes that the outputs from sequence first on lie at offsets.
func (r *receipts) add(p ledger.Partition, first ledger.Sequence, offsets []ledger.Offset) {
	for i, o := range offsets {
		s := first + ledger.Sequence(i)
		if n := len(r.ranges); n > 0 {
			if last := &r.ranges[n-1]; last.Next == s && last.End() == ledger.Frontier(o) {
				last.Next++
				continue
			}
		}
		r.ranges = append(r.ranges, store.Receipt{Partition: p, First: s, Next: s + 1, Offset: o})
	}
	r.outputs += len(offsets)
}

// take empties r and returns what it held.
func (r *receipts) take() []store.Receipt {
	ranges := r.ranges
	r.ranges, r.outputs = nil, 0
	return ranges
}

// acknowledge writes receipts in order. Before each the topic's id is read again (S9); after an unknown outcome the
// position is read, and only the receipt is tried again (S12).
func acknowledge(ctx context.Context, o *RelayOptions, l store.Lease, ranges []store.Receipt) error {
	st := o.Store
	for _, r := range ranges {
		if err := o.Topic.identify(ctx); err != nil {
			return err
		}
		err := settle(ctx, o.Pause,
			func(ctx context.Context) error { return st.Acknowledge(ctx, l, r) },
			func(ctx context.Context) (bool, error) {
				pos, err := st.RelayPosition(ctx, l.Partition)
				switch {
				case err != nil:
					return false, err
				case pos.Term != l.Term || pos.Nonce != l.Nonce:
					return false, fmt.Errorf("relay position of partition %d has term %d, not %d: %w", l.Partition, pos.Term, l.Term, store.ErrFence)
				case pos.Sequence == r.Next && pos.Output == r.End():
					return true, nil
				case pos.Sequence == r.First:
					return false, nil
				}
				return false, fmt.Errorf("relay position of partition %d is at sequence %d, output %d: neither before nor after the receipt of %d to %d: %w",
					l.Partition, pos.Sequence, pos.Output, r.First, r.Next, store.ErrIntegrity)
			})
		if err != nil {
			return fmt.Errorf("write receipt of sequences %d to %d of partition %d: %w", r.First, r.Next-1, l.Partition, err)
		}
	}
	return nil
}
