package store

import "amends/internal/ledger"

// Receipt states that sequences First..Next-1 lie at output offsets Offset..Offset+(Next-First)-1 (S9).
type Receipt struct {
	First     ledger.Sequence
	Next      ledger.Sequence
	Offset    ledger.Offset
	Partition ledger.Partition
}

// End returns the output offset after the receipt's last record.
func (r Receipt) End() ledger.Frontier {
	return ledger.Frontier(r.Offset) + ledger.Frontier(r.Next-r.First)
}

// RelayPosition is a relay position row: the first sequence without a receipt, the output offset after the last
// receipt (0 before the first), and the source offset from which Pending finds Sequence.
type RelayPosition struct {
	Term     int64
	Nonce    Nonce
	Sequence ledger.Sequence
	Output   ledger.Frontier
	Source   ledger.Offset
}

// ViewPosition is a view position row: the output frontier, the next sequence and the cause offset of the last
// output applied (-1 before the first). Stopped is set by a stored violation and never cleared (S9).
type ViewPosition struct {
	Term     int64
	Nonce    Nonce
	Output   ledger.Frontier
	Sequence ledger.Sequence
	Cause    ledger.Offset
	Stopped  bool
}

// Cause is the source record whose decision produced an output version (S8).
type Cause struct {
	TxnID     string
	Offset    ledger.Offset
	Revision  ledger.Revision
	Partition ledger.Partition
}

// ViewRow is one row of the view: the members of the envelope last applied to an output, and the digest of its
// bytes (the first 8 bytes, big endian, of their SHA-256). Status is nil unless the row is a present status.
type ViewRow struct {
	ID        ledger.OutputID
	Status    *ledger.Status
	Cause     Cause
	Sequence  ledger.Sequence
	Version   ledger.Version
	Close     int64
	Previous  int64
	Threshold int64
	Digest    int64
	Index     int32
	Count     int32
	Present   bool
}

// ViewChange replaces a row: Before is the version that must be stored now, 0 for none.
type ViewChange struct {
	Row    ViewRow
	Before ledger.Version
}

// Violation is a record that breaks the protocol of S9, kept for ever with its exact bytes (nil: absent).
type Violation struct {
	Reason    string
	Key       []byte
	Value     []byte
	Offset    ledger.Offset
	Partition ledger.Partition
}

// ViewPage is what one view transaction commits: the final rows of whole repairs and the position after them.
// Before is the position that must be stored now. Stop, when not nil, is stored with them and stops the partition.
type ViewPage struct {
	Changes   []ViewChange
	Stop      *Violation
	Before    ViewPosition
	Next      ViewPosition
	Partition ledger.Partition
}
