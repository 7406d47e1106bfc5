package stored

import (
	"cmp"
	"fmt"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/wire"
)

// RowCheck finds rows of one partition that contradict themselves: their members against each other, against the view's
// position and against the digest of the envelope that they came from (S10).
type RowCheck struct {
	Config    *manifest.Config
	View      *store.ViewPosition
	Partition ledger.Partition
	buf       []byte
}

// Fault says what is wrong with a row, "" when nothing is.
func (c *RowCheck) Fault(r *store.ViewRow) string {
	if s := cmp.Or(Place(r.ID), shape(r)); s != "" {
		return s
	}
	switch {
	case r.Cause.Partition != c.Partition:
		return fmt.Sprintf("its cause is on partition %d", r.Cause.Partition)
	case r.Sequence < 0 || r.Sequence >= c.View.Sequence:
		return fmt.Sprintf("sequence %d is not below the view's next sequence %d", r.Sequence, c.View.Sequence)
	case r.Cause.Offset > c.View.Cause:
		return fmt.Sprintf("cause offset %d is past the last one applied, %d", r.Cause.Offset, c.View.Cause)
	}
	e := envelopeOf(c.Config.Namespace, r)
	c.buf = wire.AppendEnvelope(c.buf[:0], &e)
	if d := wire.EnvelopeDigest(c.buf); d != r.Digest {
		return fmt.Sprintf("its members give an envelope with digest %016x, stored is %016x", uint64(d), uint64(r.Digest))
	}
	return ""
}

// Place checks what says which output a row is of, and so where it stands.
func Place(id ledger.OutputID) string {
	status := id.Kind == ledger.TrustStatus
	dated := id.Day >= ledger.MinDay && id.Day <= ledger.MaxDay
	if id.Kind < ledger.Balance || id.Kind > ledger.TrustStatus || status && id.Day != 0 || !status && !dated {
		return fmt.Sprintf("output kind %d with day %d", id.Kind, id.Day)
	}
	return ""
}

// shape checks what makes a row an envelope at all, so that it can be encoded.
func shape(r *store.ViewRow) string {
	status := r.ID.Kind == ledger.TrustStatus
	switch {
	case r.Version < 1:
		return fmt.Sprintf("version %d", r.Version)
	case (r.Status != nil) != (status && r.Present):
		return fmt.Sprintf("present is %t and a status payload is there: %t", r.Present, r.Status != nil)
	case (!r.Present || r.ID.Kind != ledger.Alert) && (r.Previous != 0 || r.Threshold != 0) || (!r.Present || status) && r.Close != 0:
		return "it holds numbers that an output of its kind and presence does not have"
	case r.Count < 1 || r.Index < 0 || r.Index >= r.Count:
		return fmt.Sprintf("output %d of a repair of %d", r.Index, r.Count)
	}
	return ""
}

// envelopeOf returns the envelope that a view row holds by its members (S8, design section 4).
func envelopeOf(namespace string, r *store.ViewRow) wire.Envelope {
	return wire.Envelope{Namespace: namespace, Sequence: r.Sequence, Output: r.ID, Version: r.Version, Present: r.Present,
		Close: r.Close, Previous: r.Previous, Threshold: r.Threshold, Status: r.Status,
		Cause: wire.Cause{Partition: r.Cause.Partition, Offset: r.Cause.Offset, TxnID: r.Cause.TxnID, Revision: r.Cause.Revision},
		Index: int(r.Index), Count: int(r.Count)}
}

// Name writes an output id for people.
func Name(id ledger.OutputID) string {
	s := id.Kind.String() + " " + strconv.Quote(id.Key.Item) + " " + strconv.Quote(id.Key.Location)
	if id.Kind != ledger.TrustStatus {
		s += " " + id.Day.String()
	}
	return s
}

// CompareIDs orders outputs as drift reports do: item bytes, location bytes, day, kind; the status last.
func CompareIDs(a, b ledger.OutputID) int {
	return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(last(a), last(b)), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Kind, b.Kind))
}

func last(id ledger.OutputID) int {
	if id.Kind == ledger.TrustStatus {
		return 1
	}
	return 0
}
