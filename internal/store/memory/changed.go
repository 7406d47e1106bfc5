package memory

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// Decided calls fn for every decision of a partition with outputs whose source offset is above after and at most to, in order.
func (s *snapshot) Decided(ctx context.Context, p ledger.Partition, after, to ledger.Offset, fn func(*ledger.Decision) error) error {
	return s.Journal(ctx, p, func(d *ledger.Decision) error {
		if d.Offset <= after || d.Offset > to || len(d.Changes) == 0 {
			return nil
		}
		return fn(d)
	})
}

// Rows calls fn for the view rows that a partition has of these outputs, in no order.
func (s *snapshot) Rows(_ context.Context, p ledger.Partition, ids []ledger.OutputID, fn func(store.ViewRow) error) error {
	if err := s.check(p); err != nil {
		return fmt.Errorf("read view rows: %w", err)
	}
	wanted := make(map[ledger.OutputID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for _, r := range s.rows[p] {
		if wanted[r.ID] {
			if err := fn(r); err != nil {
				return err
			}
		}
	}
	return nil
}
