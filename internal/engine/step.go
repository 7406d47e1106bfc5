package engine

import (
	"errors"
	"fmt"

	"amends/internal/diff"
	"amends/internal/invariant"
	"amends/internal/ledger"
	"amends/internal/wire"
)

var (
	// ErrExhausted is returned by Step where a version, a sequence or a frontier would pass 2^63-1 (S8). Nothing of the
	// record is committed; the caller stops (exit 1).
	ErrExhausted = diff.ErrExhausted
	// ErrMissing is returned by Step for a record whose key was not restored: the caller did not ask Missing.
	ErrMissing = errors.New("key state is missing")
	// ErrOrder is returned by Step for records that are not of the partition, not in rising order, or below the frontier.
	ErrOrder = errors.New("records out of order")
)

// MaxOutputs is where Step ends a batch early: the decision that reaches it is the last one (design, worker).
const MaxOutputs = 50_000

// Position is where a partition stands: the next offset to decide and the next emission sequence, as committed.
type Position struct {
	Frontier ledger.Frontier
	Sequence ledger.Sequence
}

// Step decides records in order and returns what one transaction commits: their decisions from position pos on, and
// next as the frontier after them (at least the last record's offset + 1; more where markers and gaps were seen behind
// it, S13). At MaxOutputs it stops early: the batch then holds the first len(Decisions) records and its Next is the
// frontier after those. It also stops before a record that it cannot decide for ErrExhausted, and returns that error
// only where there is no record before it.
//
// The keys of valid records must have been restored (Missing, Restore). States change in place: the caller drops them
// unless the batch is known to be committed.
func Step(s *States, pos Position, recs []wire.Decoded, next ledger.Frontier) (ledger.Batch, error) {
	b := ledger.Batch{Partition: s.partition, Expected: pos.Frontier, Next: pos.Frontier, FirstSequence: pos.Sequence, NextSequence: pos.Sequence,
		Decisions: make([]ledger.Decision, 0, len(recs))}
	slab := slab{size: s.slabSize}
	defer func() { s.slabSize = min(max(int(b.Work.Changed), slabLeast), slabMost) }()
	for i := range recs {
		if b.Work.Changed >= MaxOutputs {
			return b, nil
		}
		if err := s.decide(&b, &recs[i], &slab); err != nil {
			if i > 0 && errors.Is(err, ErrExhausted) {
				return b, nil
			}
			return ledger.Batch{}, fmt.Errorf("decide record %d of partition %d: %w", recs[i].Record.Offset, s.partition, err)
		}
	}
	if next < b.Next {
		return ledger.Batch{}, fmt.Errorf("move partition %d to frontier %d, below %d: %w", s.partition, next, b.Next, ErrOrder)
	}
	b.Next = next
	return b, nil
}

// decide appends the decision of one record to the batch.
func (s *States) decide(b *ledger.Batch, rec *wire.Decoded, slab *slab) error {
	offset := rec.Record.Offset
	switch {
	case rec.Record.Partition != s.partition || offset < ledger.Offset(b.Next) || offset < 0:
		return ErrOrder
	case offset == ledger.MaxCounter:
		return ErrExhausted
	}
	b.Decisions = append(b.Decisions, ledger.Decision{Offset: offset, Timestamp: rec.Record.Timestamp, Digest: rec.Digest,
		Rejection: rec.Rejection, Evidence: rec.Evidence})
	d := &b.Decisions[len(b.Decisions)-1]
	work := ledger.Work{Records: 1}
	if rec.Rejection != 0 {
		work.Rejected = 1
	} else {
		d.Assertion = rec.Assertion
		w, err := s.accept(d, b.NextSequence, slab)
		if err != nil {
			b.Decisions = b.Decisions[:len(b.Decisions)-1]
			return err
		}
		work.Add(w)
	}
	b.Work.Add(work)
	b.NextSequence += ledger.Sequence(len(d.Changes))
	b.Next = ledger.Frontier(offset) + 1
	return nil
}

// accept decides a valid record: d holds its assertion and offset and receives the rest.
func (s *States) accept(d *ledger.Decision, sequence ledger.Sequence, slab *slab) (ledger.Work, error) {
	k := s.keys[d.Assertion.Key]
	if k == nil {
		return ledger.Work{}, ErrMissing
	}
	if !k.known {
		k.known, k.id, d.NewKey = true, ledger.KeyID(d.Offset), true
	}
	d.KeyID = k.id
	class, changes, work, err := k.decide(slab.room(), &d.Assertion)
	if err == nil && sequence > ledger.Sequence(ledger.MaxCounter-len(changes)) {
		err = ErrExhausted
	}
	if err != nil {
		s.remove(k) // its evidence already has the record
		return work, err
	}
	d.Class, d.Changes = class, slab.take(changes)
	if len(changes) > 0 {
		d.Sequence = sequence
		k.publish(changes)
	}
	k.rows++
	s.used(k)
	work.Accepted = 1
	work.Changed = int64(len(changes))
	for i := range changes {
		if !changes[i].Present {
			work.Withdrawn++
		}
	}
	return work, nil
}

// publish notes the outputs of a decision as published.
func (k *state) publish(changes []ledger.Change) {
	invariant.That(k.days.Commit(changes), "versions of an output are consecutive (I5)")
	if last := &changes[len(changes)-1]; last.Kind == ledger.TrustStatus {
		k.status, k.version = last.Status, last.Version
	}
}

// slab hands out room for the changes of many decisions from few allocations. Its size is what the batch before took,
// so that small batches allocate little and repairs are seldom copied while they grow.
type slab struct {
	buf  []ledger.Change
	size int
}

const (
	slabLeast = 16 // changes; with less room left a new slab is made
	slabMost  = 8_192
)

// room returns an empty slice with capacity; take says what was appended to it.
func (s *slab) room() []ledger.Change {
	if cap(s.buf)-len(s.buf) < slabLeast {
		s.buf = make([]ledger.Change, 0, max(s.size, slabLeast))
	}
	return s.buf[len(s.buf):]
}

// take keeps changes, which were appended to room(), for their decision.
func (s *slab) take(changes []ledger.Change) []ledger.Change {
	n := len(changes)
	if n == 0 {
		return nil
	}
	if n <= cap(s.buf)-len(s.buf) {
		s.buf = s.buf[:len(s.buf)+n]
	}
	return changes[:n:n]
}
