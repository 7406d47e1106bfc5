package view

import "amends/internal/ledger"

// Reason is the stable code of a protocol violation (S9).
type Reason string

// The reasons, in the order in which a record is looked at.
const (
	NotCanonical   Reason = "NOT_CANONICAL"      // the value is absent or not its own canonical encoding
	OtherNamespace Reason = "OTHER_NAMESPACE"    // the envelope belongs to another namespace
	KeyMismatch    Reason = "KEY_MISMATCH"       // the record's key is not the canonical encoding of the envelope's
	WrongPartition Reason = "WRONG_PARTITION"    // the stock key does not live on this partition
	CausePartition Reason = "CAUSE_PARTITION"    // the cause is a record of another partition
	SequenceGap    Reason = "SEQUENCE_GAP"       // a later sequence than the next: a publication was lost
	RepairBroken   Reason = "REPAIR_BROKEN"      // the next sequence neither begins nor continues a repair
	VersionGap     Reason = "VERSION_GAP"        // the next sequence does not carry its row's version + 1
	RepeatAhead    Reason = "REPETITION_AHEAD"   // a lower sequence carries a version above its row's
	RepeatDiffers  Reason = "REPETITION_DIFFERS" // a lower sequence carries its row's version with another envelope
)

// Violation is the record that stops a partition, with its exact bytes (nil: absent).
type Violation struct {
	Reason Reason
	Detail string // what was found and what was expected, in words
	Key    []byte
	Value  []byte
	Offset ledger.Offset
}

// String returns the reason's code, a colon and the detail: the text that is stored.
func (v *Violation) String() string { return string(v.Reason) + ": " + v.Detail }
