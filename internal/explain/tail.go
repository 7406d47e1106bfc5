package explain

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// page is how many decisions a round reads of a partition at a time.
const page = 1_000

// Tail follows the outputs of a namespace as they are committed. It is for one goroutine.
type Tail struct {
	cfg  *manifest.Config
	next []ledger.Frontier // by partition
}

// Start begins at a point of knowledge: nil is now. An offset with its partition is about that partition, and the others
// begin now; one without is about all. first begins at the first record instead.
func Start(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, at *Point, first bool) (*Tail, error) {
	cuts, err := from.Frontiers(ctx)
	if err != nil {
		return nil, err
	}
	if at != nil && at.Partition != nil && int(*at.Partition) >= len(cuts) {
		return nil, &PointError{fmt.Sprintf("there is no partition %d", *at.Partition)}
	}
	t := &Tail{cfg: cfg, next: make([]ledger.Frontier, len(cuts))}
	for i, c := range cuts {
		switch {
		case first:
		case at == nil || at.Time.IsZero() && at.Partition != nil && *at.Partition != c.Partition:
			t.next[i] = c.Frontier
		case at.Time.IsZero():
			t.next[i] = at.Offset
		default:
			if t.next[i], err = from.DecidedBy(ctx, c.Partition, c.Frontier, at.Time); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// Round calls fn with every output version committed since the last round, partition after partition, each in the order of
// emission. What fn has seen is not given again, also where a round fails.
func (t *Tail) Round(ctx context.Context, from *reader.Snapshot, fn func(*Version) error) error {
	cuts, err := from.Frontiers(ctx)
	if err != nil {
		return err
	}
	for i := range t.next {
		for t.next[i] < cuts[i].Frontier {
			if err := t.read(ctx, from, cuts[i], &t.next[i], fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a page of a partition.
func (t *Tail) read(ctx context.Context, from *reader.Snapshot, c store.Cut, next *ledger.Frontier, fn func(*Version) error) error {
	rows := 0
	err := from.Outputs(ctx, c.Partition, *next, c.Frontier, page, func(e *reader.Entry) error {
		d := &e.Decision
		rows++
		cause := causeOf(e, c.Partition)
		for i := range d.Changes {
			v := version(t.cfg, e, &cause, i)
			if err := fn(&v); err != nil {
				return err
			}
		}
		*next = ledger.Frontier(d.Offset) + 1
		return nil
	})
	if err == nil && rows < page {
		*next = c.Frontier
	}
	return err
}
