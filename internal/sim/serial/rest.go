package serial

import (
	"context"

	"amends/internal/ledger"
	"amends/internal/store"
)

// AtRest checks everything that is stored, in a snapshot in which all is processed, with nothing remembered of how it came
// about: I1, I8, I10, I16. books are those of every partition, in order. It fails with the snapshot's errors.
func AtRest(ctx context.Context, snapshot func(context.Context, func(store.Snapshot) error) error, books []*Books) error {
	return snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		for p, b := range books {
			if err := b.atRest(ctx, s, &states[p]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *Books) atRest(ctx context.Context, s store.Snapshot, state *store.PartitionState) error {
	n, rejected := 0, int64(0)
	if err := s.Journal(ctx, b.partition, func(d *ledger.Decision) error {
		if n >= len(b.Part.Decisions) || Differs(d, &b.Part.Decisions[n]) != "" {
			b.Fail("I1", "partition %d: the journal's decision %d, offset %d, is not the serial model's", b.partition, n, d.Offset)
		}
		if d.Rejection != 0 {
			rejected++
		}
		n++
		return nil
	}); err != nil {
		return err
	}
	work := state.Measurements.Total.Work
	if n != len(b.Part.Decisions) || state.Rejected != rejected || work.Records != int64(n) || work.Rejected != rejected || work.Changed != int64(b.Sequence) {
		b.Fail("I16", "partition %d: %d decisions, %d rejected; counted %d and %+v", b.partition, n, rejected, state.Rejected, work)
	}
	rows := 0
	if err := s.ViewRows(ctx, b.partition, func(r store.ViewRow) error {
		rows++
		if h := b.Fold[r.ID]; h.Version != r.Version || h.Digest != r.Digest {
			b.Fail("I10", "partition %d: the row of %v is not the topic's", b.partition, r.ID)
		}
		return nil
	}); err != nil {
		return err
	}
	if rows != len(b.Fold) {
		b.Fail("I10", "partition %d: %d rows, the topic gives %d", b.partition, rows, len(b.Fold))
	}
	receipts, err := s.Receipts(ctx, b.partition)
	if err != nil {
		return err
	}
	var next ledger.Sequence
	for _, r := range receipts {
		if r.First != next {
			b.Fail("I8", "partition %d: a receipt from sequence %d where %d is next", b.partition, r.First, next)
		}
		next = r.Next
	}
	return nil
}
