package delivery

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// cursor walks the outbox of a partition in sequence order.
type cursor struct {
	st        RelayStore
	decisions []ledger.Decision
	at        int             // into decisions
	next      ledger.Sequence // of the output that peek shows
	source    ledger.Offset   // a decision at or before the one that holds next
	most      int             // outputs a query asks for
	partition ledger.Partition
}

// peek returns the decision that holds the next output and the output's index in it; nil while nothing is pending.
func (c *cursor) peek(ctx context.Context) (*ledger.Decision, int, error) {
	for ; c.at < len(c.decisions); c.at++ {
		d := &c.decisions[c.at]
		i := c.next - d.Sequence
		if i < 0 {
			return nil, 0, fmt.Errorf("outbox of partition %d: sequence %d follows %d: %w", c.partition, d.Sequence, c.next, store.ErrIntegrity)
		}
		if i < ledger.Sequence(len(d.Changes)) {
			return d, int(i), nil
		}
	}
	from := store.RelayPosition{Sequence: c.next, Source: c.source}
	decisions, err := c.st.Pending(ctx, c.partition, from, c.most)
	if err != nil {
		return nil, 0, err
	}
	c.decisions, c.at = decisions, 0
	if len(decisions) == 0 {
		return nil, 0, nil
	}
	d := &decisions[0]
	if i := c.next - d.Sequence; i >= 0 && i < ledger.Sequence(len(d.Changes)) {
		return d, int(i), nil
	}
	return nil, 0, fmt.Errorf("outbox of partition %d: the decision at %d holds %d outputs from sequence %d, not %d: %w",
		c.partition, d.Offset, len(d.Changes), d.Sequence, c.next, store.ErrIntegrity)
}

// advance moves past the output that peek showed.
func (c *cursor) advance(d *ledger.Decision) {
	c.next++
	c.source = d.Offset
}
