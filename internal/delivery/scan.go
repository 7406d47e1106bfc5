package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/wire"
)

// scan is the reading of a topic's tail before anything is published (S9): the record of the last receipt, then what lies
// past it. First occurrences that are in the outbox get their receipts; nothing is published before the end is reached.
type scan struct {
	reader  Reader // nil while nothing is to be read
	records []ledger.SourceRecord
	last    *ledger.SourceRecord // what the last receipt says lies at its offset, until it was compared
	at      ledger.Frontier
	end     ledger.Frontier // of the topic when the scan began
}

func (t *scan) close() {
	if t.reader != nil {
		t.reader.Close()
	}
}

// open reads the position and the last receipt, and prepares the scan of the tail.
func (s *RelayStepper) open(ctx context.Context) error {
	p := s.lease.Partition
	pos, err := s.opts.Store.RelayPosition(ctx, p)
	if err != nil {
		return err
	}
	if err := s.mine(pos); err != nil {
		return err
	}
	receipt, err := s.opts.Store.LastReceipt(ctx, p)
	if err != nil {
		return err
	}
	if err := agree(pos, receipt); err != nil {
		// The receipt may be that of a holder who took over between the two reads: that is no contradiction.
		now, e := s.opts.Store.RelayPosition(ctx, p)
		if e == nil {
			e = s.mine(now)
		}
		if e != nil {
			return e
		}
		return err
	}
	if err := s.opts.Topic.identify(ctx); err != nil {
		return err
	}
	ends, err := s.opts.Topic.Topics.Ends(ctx, s.opts.Topic.Name)
	if err != nil {
		return err
	}
	if int(p) >= len(ends) { // made again since it was identified
		return &broker.IdentityError{Topic: s.opts.Topic.Name, What: "partitions", Want: fmt.Sprint(s.opts.Topic.Partitions), Found: fmt.Sprint(len(ends))}
	}
	c := &cursor{st: s.opts.Store, partition: p, next: pos.Sequence, source: pos.Source, most: s.opts.PageOutputs}
	s.pager = newPager(s.opts.Config, c, s.lease.Term, s.opts.PageOutputs, s.opts.PageBytes)
	t := &scan{at: pos.Output, end: ledger.Frontier(ends[p])}
	if receipt != nil {
		last := ledger.SourceRecord{Partition: p, Offset: ledger.Offset(receipt.End() - 1)}
		if last.Key, last.Value, err = s.outboxBytes(ctx, receipt.Next-1); err != nil {
			return err
		}
		t.last, t.at = &last, receipt.End()-1
		if t.end < receipt.End() {
			return fmt.Errorf("the last receipt ends at output offset %d, the topic at %d: %w", receipt.End(), t.end, store.ErrIntegrity)
		}
	}
	if t.at < t.end {
		if t.reader, err = s.opts.Topic.NewReader(); err != nil {
			return err
		}
		if err := t.reader.Seek(ctx, p, t.at); err != nil {
			t.close()
			return err
		}
	}
	s.tail, s.opened = t, true
	return nil
}

// mine checks that a position row still has the lease's term and nonce.
func (s *RelayStepper) mine(pos store.RelayPosition) error {
	if pos.Term != s.lease.Term || pos.Nonce != s.lease.Nonce {
		return fmt.Errorf("the position has term %d, the lease %d: %w", pos.Term, s.lease.Term, store.ErrFence)
	}
	return nil
}

// agree checks that the position row is where the last receipt ends.
func agree(pos store.RelayPosition, receipt *store.Receipt) error {
	switch {
	case receipt == nil && pos.Sequence == 0 && pos.Output == 0:
		return nil
	case receipt != nil && receipt.Next == pos.Sequence && receipt.End() == pos.Output:
		return nil
	}
	return fmt.Errorf("relay position at sequence %d, output %d, does not follow from the last receipt, %+v: %w", pos.Sequence, pos.Output, receipt, store.ErrIntegrity)
}

// scanTail reads on, compares, and writes receipts for what it found.
func (s *RelayStepper) scanTail(ctx context.Context) (Progress, error) {
	t := s.tail
	if len(t.records) == 0 {
		if t.at >= t.end {
			t.close()
			s.tail = nil
			return Progress{}, nil
		}
		if err := t.read(ctx, s.lease.Partition); err != nil {
			return Progress{}, err
		}
	}
	found := s.pager.cursor.next
	waiting, err := s.compare(ctx)
	// What was found lies in the topic whatever follows it.
	s.writeReceipts(ctx)
	if e := s.joinReceipts(); err == nil {
		err = e
	}
	pr := Progress{Outputs: int(s.pager.cursor.next - found)}
	if waiting {
		pr.Waiting = fmt.Sprintf("the topic is ahead of the outbox at output offset %d, sequence %d", t.records[0].Offset, s.pager.cursor.next)
	}
	return pr, err
}

// read gets the next records of the tail; none within a while is no error.
func (t *scan) read(ctx context.Context, p ledger.Partition) error {
	op, cancel := context.WithTimeout(ctx, tailWait)
	defer cancel()
	fetched, err := t.reader.Poll(op)
	for _, f := range fetched {
		if f.Partition == p {
			t.records = append(t.records, f.Records...)
			t.at = f.Next
		}
	}
	if err != nil && len(fetched) == 0 && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
		return err
	}
	return nil
}

// compare takes the records read, in order; it reports true where the outbox does not hold yet what the topic holds.
func (s *RelayStepper) compare(ctx context.Context) (ahead bool, err error) {
	t := s.tail
	for len(t.records) > 0 {
		r := &t.records[0]
		if t.last != nil {
			if r.Offset != t.last.Offset || !bytes.Equal(r.Key, t.last.Key) || !bytes.Equal(r.Value, t.last.Value) {
				return false, differs(r, "the last receipt's record at offset %d", t.last.Offset)
			}
			t.last = nil
		} else if ahead, err := s.match(ctx, r); ahead || err != nil {
			return ahead, err
		}
		t.records = t.records[1:]
	}
	if t.last != nil && t.at > ledger.Frontier(t.last.Offset) {
		return false, fmt.Errorf("no record lies at output offset %d, which has a receipt: %w", t.last.Offset, store.ErrIntegrity)
	}
	return false, nil
}

// match compares one record past the last receipt with the outbox, if it is a first occurrence.
func (s *RelayStepper) match(ctx context.Context, r *ledger.SourceRecord) (ahead bool, err error) {
	e, err := wire.DecodeEnvelope(r.Value)
	if err != nil {
		return false, differs(r, "an envelope (%v)", err)
	}
	next := s.pager.cursor.next
	switch {
	case e.Namespace != s.opts.Config.Namespace || e.Sequence > next:
		return false, differs(r, "sequence %d of %q", next, s.opts.Config.Namespace)
	case e.Sequence < next:
		return false, nil
	}
	d, i, err := s.pager.cursor.peek(ctx)
	if err != nil || d == nil {
		return err == nil, err
	}
	key, value, err := s.pager.expect(d, i)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, value) {
		return false, differs(r, "the outbox's bytes of sequence %d", next)
	}
	s.receipts.add(s.lease.Partition, next, []ledger.Offset{r.Offset})
	s.pager.cursor.advance(d)
	return false, nil
}

// differs is the integrity stop of a topic that holds something else than the outbox.
func differs(r *ledger.SourceRecord, want string, args ...any) error {
	return fmt.Errorf("the record at output offset %d of partition %d is not %s: key %.256q, value %.512q: %w",
		r.Offset, r.Partition, fmt.Sprintf(want, args...), r.Key, r.Value, store.ErrIntegrity)
}
