package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/verify/stored"
	"amends/internal/wire"
)

// held is what the fold of a topic keeps of one output.
type held struct {
	version ledger.Version
	digest  int64
}

// topicCheck walks the output topic of one partition beside the journal's digests and the receipts, and folds it.
type topicCheck struct {
	*run
	fold     map[ledger.OutputID]held
	receipts []store.Receipt
	digests  []int64
	key      []byte
	view     store.ViewPosition
	decided  ledger.Sequence // the partition's next sequence
	next     ledger.Sequence // the next first occurrence
	applied  ledger.Sequence // the next first occurrence at the view's frontier
	cause    ledger.Offset   // of the last one below it, -1 before the first
	inside   ledger.Frontier // the offset up to which the current receipt has been seen
	p        ledger.Partition
}

// deepTopic reads the output topic up to what the view has applied and the relay has receipts for.
func (r *run) deepTopic(ctx context.Context, s store.Snapshot, output Reader, p ledger.Partition, state store.PartitionState, digests []int64) error {
	if stored.MissingPosition(state) != "" {
		return nil // which the comparison with the oracle has counted; there is nothing to read up to
	}
	receipts, err := s.Receipts(ctx, p)
	if err != nil {
		return fmt.Errorf("read receipts of partition %d: %w", p, err)
	}
	c := &topicCheck{run: r, p: p, view: *state.View, decided: state.Owned.Sequence, digests: digests, receipts: receipts, cause: -1, fold: map[ledger.OutputID]held{}}
	stored.CheckReceipts(receipts, state.Relay, func(at int64, detail string) { c.differ(Topic, ledger.OutputID{}, at, detail) })
	end := max(state.View.Output, state.Relay.Output)
	if _, err := output.ReadTo(ctx, p, 0, end, func(rec ledger.SourceRecord) error {
		c.record(&rec)
		return nil
	}); err != nil {
		return fmt.Errorf("read output partition %d: %w", p, err)
	}
	if len(c.receipts) > 0 {
		c.differ(Topic, ledger.OutputID{}, int64(c.inside), fmt.Sprintf("the topic does not hold the receipt of sequences %d to %d at offset %d",
			c.receipts[0].First, c.receipts[0].Next-1, c.receipts[0].Offset))
	}
	return c.compareFold(ctx, s)
}

func (c *topicCheck) differ(what What, id ledger.OutputID, at int64, detail string) {
	c.report.add(Difference{What: what, ID: id, Partition: c.p, Offset: at, Detail: detail})
}

// record compares one record of the topic with the journal and the receipts, and folds it.
func (c *topicCheck) record(rec *ledger.SourceRecord) {
	at := int64(rec.Offset)
	e, err := wire.DecodeEnvelope(rec.Value)
	if err != nil {
		c.differ(Topic, ledger.OutputID{}, at, "it is no envelope: "+err.Error())
		return
	}
	if c.key = wire.AppendKey(c.key[:0], e.Output.Key); !bytes.Equal(c.key, rec.Key) {
		c.differ(Topic, e.Output, at, "its key is not that of its envelope")
	}
	digest := wire.EnvelopeDigest(rec.Value)
	undecided := e.Sequence >= c.decided && e.Sequence < c.view.Sequence // (again): the report says so
	switch {
	case e.Sequence >= ledger.Sequence(len(c.digests)) && !undecided:
		c.differ(Topic, e.Output, at, fmt.Sprintf("the journal has no sequence %d", e.Sequence))
		return
	case !undecided && c.digests[e.Sequence] != digest:
		c.differ(Topic, e.Output, at, fmt.Sprintf("it is not the journal's envelope of sequence %d", e.Sequence))
	case e.Sequence > c.next:
		c.differ(Topic, e.Output, at, fmt.Sprintf("sequence %d comes where %d is due: a publication was lost", e.Sequence, c.next))
	}
	c.receipt(rec.Offset, &e)
	if e.Sequence < c.next {
		return // a repetition
	}
	c.next = e.Sequence + 1
	if ledger.Frontier(rec.Offset) < c.view.Output {
		if before := c.fold[e.Output].version; e.Version != before+1 {
			c.differ(Topic, e.Output, at, fmt.Sprintf("version %d follows version %d", e.Version, before))
		}
		c.fold[e.Output] = held{version: e.Version, digest: digest}
		c.applied, c.cause = c.next, e.Cause.Offset
	}
}

// receipt compares a record with the receipt that covers its offset, if one does.
func (c *topicCheck) receipt(at ledger.Offset, e *wire.Envelope) {
	for len(c.receipts) > 0 && ledger.Frontier(at) >= c.receipts[0].End() {
		c.differ(Topic, ledger.OutputID{}, int64(c.receipts[0].Offset), fmt.Sprintf("the topic does not hold every record of the receipt of sequences %d to %d",
			c.receipts[0].First, c.receipts[0].Next-1))
		c.receipts = c.receipts[1:]
	}
	if len(c.receipts) == 0 || at < c.receipts[0].Offset {
		return
	}
	r := c.receipts[0]
	if want := r.First + ledger.Sequence(at-r.Offset); e.Sequence != want {
		c.differ(Topic, e.Output, int64(at), fmt.Sprintf("it is sequence %d, the receipt says %d", e.Sequence, want))
	}
	if c.inside = ledger.Frontier(at) + 1; c.inside == r.End() {
		c.receipts = c.receipts[1:]
	}
}

// compareFold compares the fold of the topic up to the view's frontier with the view's rows (I10).
func (c *topicCheck) compareFold(ctx context.Context, s store.Snapshot) error {
	if c.applied != c.view.Sequence || c.cause != c.view.Cause {
		c.differ(Fold, ledger.OutputID{}, int64(c.view.Output), fmt.Sprintf("below the view's frontier the topic ends with sequence %d, cause offset %d; the view's position says %d, %d",
			c.applied-1, c.cause, c.view.Sequence-1, c.view.Cause))
	}
	err := s.ViewRows(ctx, c.p, func(row store.ViewRow) error {
		h, ok := c.fold[row.ID]
		delete(c.fold, row.ID)
		switch {
		case !ok:
			c.differ(Fold, row.ID, -1, "the view holds an output that the topic does not give")
		case h.version != row.Version:
			c.differ(Fold, row.ID, -1, fmt.Sprintf("the view holds version %d, the topic gives %d", row.Version, h.version))
		case h.digest != row.Digest:
			c.differ(Fold, row.ID, -1, fmt.Sprintf("the view's digest of version %d is %016x, the topic gives %016x", row.Version, uint64(row.Digest), uint64(h.digest)))
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrIntegrity) { // which the comparison with the oracle has counted
		return fmt.Errorf("read view rows of partition %d: %w", c.p, err)
	}
	var first *ledger.OutputID
	for id := range c.fold {
		if first == nil || stored.CompareIDs(id, *first) < 0 {
			first = &id
		}
	}
	if first != nil {
		c.differ(Fold, *first, -1, fmt.Sprintf("the topic gives %d outputs that the view does not hold", len(c.fold)))
	}
	return nil
}
