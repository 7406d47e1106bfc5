package store

import (
	"fmt"
	"strings"

	"amends/internal/ledger"
)

// CheckBatch is what every store asserts before it writes a batch: coordinates rise inside Expected..Next, sequences
// are contiguous, each decision is either classified or rejected. ErrExhausted where a counter passed 2^63-1 (S8),
// ErrProtocol for anything else.
func CheckBatch(b *ledger.Batch) error {
	if b.NextSequence < b.FirstSequence || b.FirstSequence < 0 {
		return fmt.Errorf("check batch: sequences %d to %d: %w", b.FirstSequence, b.NextSequence, ErrExhausted)
	}
	if b.Expected < 0 || b.Next < b.Expected {
		return fmt.Errorf("check batch: frontier %d to %d: %w", b.Expected, b.Next, ErrProtocol)
	}
	least, sequence := ledger.Offset(b.Expected), b.FirstSequence
	for i := range b.Decisions {
		d := &b.Decisions[i]
		if d.Offset < least || ledger.Frontier(d.Offset) >= b.Next {
			return fmt.Errorf("check batch: offset %d outside %d..%d: %w", d.Offset, least, b.Next, ErrProtocol)
		}
		least = d.Offset + 1
		if err := checkDecision(d, sequence); err != nil {
			return fmt.Errorf("check batch: offset %d: %w", d.Offset, err)
		}
		sequence += ledger.Sequence(len(d.Changes))
	}
	if sequence != b.NextSequence {
		return fmt.Errorf("check batch: next sequence %d, its outputs end at %d: %w", b.NextSequence, sequence, ErrProtocol)
	}
	return nil
}

func checkDecision(d *ledger.Decision, sequence ledger.Sequence) error {
	rejected := d.Rejection != 0
	if rejected == (d.Class != 0) || rejected != (d.Evidence != nil) || rejected && len(d.Changes) > 0 {
		return fmt.Errorf("class %d, rejection %d, evidence %t, %d changes: %w", d.Class, d.Rejection, d.Evidence != nil, len(d.Changes), ErrProtocol)
	}
	if d.NewKey && (rejected || ledger.Offset(d.KeyID) != d.Offset) {
		return fmt.Errorf("key id %d of a new key: %w", d.KeyID, ErrProtocol)
	}
	if len(d.Changes) > 0 && d.Sequence != sequence {
		return fmt.Errorf("sequence %d, expected %d: %w", d.Sequence, sequence, ErrProtocol)
	}
	for i := range d.Changes {
		if d.Changes[i].Version < 1 {
			return fmt.Errorf("version %d of %s %s: %w", d.Changes[i].Version, d.Changes[i].Kind, d.Changes[i].Day, ErrExhausted)
		}
	}
	return nil
}

// CheckReceipt is what every store asserts before it writes a receipt (S9): at least one sequence, coordinates in range.
func CheckReceipt(r Receipt) error {
	if r.First < 0 || r.Next <= r.First || r.Offset < 0 || r.End() < 0 {
		return fmt.Errorf("check receipt: sequences %d to %d at offset %d: %w", r.First, r.Next, r.Offset, ErrProtocol)
	}
	return nil
}

// CheckPage is what every store asserts before it applies a view page (S9): positions that do not fall and rows that
// are what an envelope can say. ErrExhausted where a version passed 2^63-1, ErrProtocol for anything else.
func CheckPage(p *ViewPage) error {
	b, n := p.Before, p.Next
	if n.Output < b.Output || n.Sequence < b.Sequence || n.Cause < b.Cause || b.Stopped || n.Stopped != (p.Stop != nil) ||
		n.Output < ledger.Frontier(n.Sequence) {
		return fmt.Errorf("check page: position %d/%d/%d to %d/%d/%d, stopped %t to %t: %w",
			b.Output, b.Sequence, b.Cause, n.Output, n.Sequence, n.Cause, b.Stopped, n.Stopped, ErrProtocol)
	}
	if p.Stop != nil && (p.Stop.Partition != p.Partition || p.Stop.Reason == "") {
		return fmt.Errorf("check page: a violation of partition %d without a reason or elsewhere: %w", p.Stop.Partition, ErrProtocol)
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if err := checkRow(&c.Row, c.Before); err != nil {
			return fmt.Errorf("check page: sequence %d: %w", c.Row.Sequence, err)
		}
		if c.Row.Cause.Partition != p.Partition || c.Row.Sequence < b.Sequence || c.Row.Sequence >= n.Sequence {
			return fmt.Errorf("check page: sequence %d with cause on partition %d: %w", c.Row.Sequence, c.Row.Cause.Partition, ErrProtocol)
		}
	}
	return nil
}

func checkRow(r *ViewRow, before ledger.Version) error {
	if r.Version < 1 {
		return fmt.Errorf("version %d after %d: %w", r.Version, before, ErrExhausted)
	}
	status := r.ID.Kind == ledger.TrustStatus
	dated := r.ID.Day >= ledger.MinDay && r.ID.Day <= ledger.MaxDay
	switch {
	case before < 0 || r.Version <= before:
		return fmt.Errorf("version %d after %d: %w", r.Version, before, ErrProtocol)
	case r.ID.Kind < ledger.Balance || r.ID.Kind > ledger.TrustStatus || status == dated || status && r.ID.Day != 0:
		return fmt.Errorf("a %s of day %d: %w", r.ID.Kind, r.ID.Day, ErrProtocol)
	case (r.Status != nil) != (status && r.Present):
		return fmt.Errorf("a %s with status payload %t: %w", r.ID.Kind, r.Status != nil, ErrProtocol)
	case r.Count < 1 || r.Index < 0 || r.Index >= r.Count:
		return fmt.Errorf("repair %d of %d: %w", r.Index, r.Count, ErrProtocol)
	case !ledger.ValidIdentifier(r.ID.Key.Item) || !ledger.ValidIdentifier(r.ID.Key.Location) || !ledger.ValidIdentifier(r.Cause.TxnID):
		return fmt.Errorf("an identifier of no or over %d bytes: %w", ledger.MaxIdentifierBytes, ErrProtocol)
	case r.Cause.Offset < 0 || r.Cause.Revision < 1:
		return fmt.Errorf("cause offset %d revision %d: %w", r.Cause.Offset, r.Cause.Revision, ErrProtocol)
	}
	return nil
}

// PlainText makes text storable for people: NUL, which PostgreSQL's text cannot hold, is written as \0, and what is not
// UTF-8 as U+FFFD.
func PlainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\0`)
}
