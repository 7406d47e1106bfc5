package ledger

import "math"

// Partition is the index of a source partition and of its output partition, 0..1023 (S2).
type Partition int32

// Offset is the broker's position of one record, 0..2^63-1.
type Offset int64

// Frontier is an exclusive offset: the next one to process, 0..2^63-1 (S1).
type Frontier int64

// Epoch is the ownership generation of a partition, 0 before the first claim (S1).
type Epoch int64

// Sequence numbers the outputs of a namespace and partition in commit order, from 0 without gaps (S1).
type Sequence int64

// Version numbers the states of one output, from 1 without gaps (S1).
type Version int64

// Revision numbers the assertions of a transaction, 1..2^63-1 (S3).
type Revision int64

// Quantity is a whole number of 10^-scale units: 1..2^63-1, for a count 0..2^63-1 (S3).
type Quantity int64

// Limits of the contract. Each is tested at the limit and one past it.
const (
	MaxValueBytes      = 65_536 // S3, a record's value
	MaxKeyBytes        = 8_192  // S3, a record's key
	MaxIdentifierBytes = 512    // S3, item, location and txn_id, each
	MaxNesting         = 64     // S3, JSON depth
	HorizonDays        = 36_525 // S3, days from the ledger origin, exclusive
	MaxPartitions      = 1_024  // S2
	MaxScale           = 9      // S2
	MaxReasons         = 16     // S8, ambiguous transactions named in a status
	MaxCounter         = math.MaxInt64
)

// MaxRepair is the largest number of outputs one decision can have: a balance and
// an alert on every day of the horizon, and the status.
const MaxRepair = 2*HorizonDays + 1

// StockKey identifies what a balance is of; both members are compared byte for byte (S1, S3).
type StockKey struct {
	Item     string
	Location string
}

// Compare orders keys by item bytes, then location bytes; it returns -1, 0 or +1.
func (k StockKey) Compare(o StockKey) int {
	switch {
	case k.Item < o.Item:
		return -1
	case k.Item > o.Item:
		return 1
	case k.Location < o.Location:
		return -1
	case k.Location > o.Location:
		return 1
	}
	return 0
}

// ValidIdentifier reports whether s may be an item, a location or a txn_id: 1..512
// bytes. That it is valid UTF-8 is the decoder's to establish (S3).
func ValidIdentifier(s string) bool { return len(s) >= 1 && len(s) <= MaxIdentifierBytes }
