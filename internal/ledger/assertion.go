package ledger

// State says whether an assertion is a movement or count, or withdraws one (S3). The zero value is invalid.
type State uint8

// The states of S3. The numbers are stored and never change.
const (
	Active    State = 1
	Cancelled State = 2
)

// Kind is what an active assertion is (S3). The zero value belongs to cancelled assertions.
type Kind uint8

// The kinds of S3. The numbers are stored and never change.
const (
	Receipt      Kind = 1
	Issue        Kind = 2
	OpeningCount Kind = 3
	ClosingCount Kind = 4
)

// Payload is the canonical payload of an assertion (S4). Two payloads are the same
// if and only if they are ==; Kind, Day and Quantity are zero when cancelled.
type Payload struct {
	Quantity Quantity
	Day      Day
	State    State
	Kind     Kind
}

// Units returns what a movement adds to a balance: negative for an issue, 0 for a count or a cancelled assertion.
func (p Payload) Units() int64 {
	switch p.Kind {
	case Receipt:
		return int64(p.Quantity)
	case Issue:
		return -int64(p.Quantity)
	}
	return 0
}

// Assertion is one valid source record: transaction TxnID of Key, at Revision, has Payload (S1).
type Assertion struct {
	Key      StockKey
	TxnID    string
	Revision Revision
	Payload  Payload
}

// SourceRecord is one record as read from the source topic (S3). A nil Key or Value is an absent one;
// an empty non-nil slice is present and empty. Timestamp is the broker's, in ms since 1970, for show only.
type SourceRecord struct {
	Key       []byte
	Value     []byte
	Offset    Offset
	Timestamp int64
	Partition Partition
}

// Class says how a valid record stood to the evidence before it (S4). The zero value belongs to rejected records.
type Class uint8

// The classes of S4. The numbers are stored and never change.
const (
	Duplicate     Class = 1
	Applied       Class = 2
	Conflict      Class = 3
	Stale         Class = 4
	StaleConflict Class = 5
)

// Rejection is the first code of S3 that applies to an invalid record. The zero value means not rejected.
type Rejection uint8

// The rejection codes of S3. The numbers are stored and never change; they are not the order of checks.
const (
	TooLarge          Rejection = 1
	Malformed         Rejection = 2
	UnsupportedSchema Rejection = 3
	InvalidValue      Rejection = 4
	OutOfHorizon      Rejection = 5
	UnknownKey        Rejection = 6
	KeyMismatch       Rejection = 7
	Routing           Rejection = 8
)

var (
	stateNames     = [...]string{Active: "active", Cancelled: "cancelled"}
	kindNames      = [...]string{Receipt: "receipt", Issue: "issue", OpeningCount: "opening_count", ClosingCount: "closing_count"}
	classNames     = [...]string{Duplicate: "DUPLICATE", Applied: "APPLIED", Conflict: "CONFLICT", Stale: "STALE", StaleConflict: "STALE_CONFLICT"}
	rejectionNames = [...]string{TooLarge: "TOO_LARGE", Malformed: "MALFORMED", UnsupportedSchema: "UNSUPPORTED_SCHEMA", InvalidValue: "INVALID_VALUE",
		OutOfHorizon: "OUT_OF_HORIZON", UnknownKey: "UNKNOWN_KEY", KeyMismatch: "KEY_MISMATCH", Routing: "ROUTING"}
)

// String returns the stable name of s as written in source records, "" for none.
func (s State) String() string { return nameOf(stateNames[:], int(s)) }

// String returns the stable name of k as written in source records, "" for none.
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// String returns the stable name of c, "" for none.
func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// String returns the stable code of r, "" for none.
func (r Rejection) String() string { return nameOf(rejectionNames[:], int(r)) }

// ParseKind returns the kind of that name, and false if there is none.
func ParseKind(s string) (Kind, bool) {
	for i, n := range kindNames {
		if n == s && i > 0 {
			return Kind(i), true
		}
	}
	return 0, false
}

// IsCount reports whether k states a balance instead of moving it (S1).
func (k Kind) IsCount() bool { return k == OpeningCount || k == ClosingCount }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}
