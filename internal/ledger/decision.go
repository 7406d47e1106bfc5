package ledger

// OutputKind is what an output states (S1). The zero value is invalid.
type OutputKind uint8

// The kinds of outputs, in the order in which one day's outputs are emitted (S8). The numbers are stored and never change.
const (
	Balance     OutputKind = 1
	Alert       OutputKind = 2
	TrustStatus OutputKind = 3
)

var outputKindNames = [...]string{Balance: "balance", Alert: "alert", TrustStatus: "status"}

// String returns the first member of an output id (S8), "" for none.
func (k OutputKind) String() string { return nameOf(outputKindNames[:], int(k)) }

// OutputID identifies one published fact (S8). Day is zero for a status.
type OutputID struct {
	Key  StockKey
	Day  Day
	Kind OutputKind
}

// ReasonCode says why a key is blocked (S7). The numbers are stored and never change.
type ReasonCode uint8

// The reasons of S7 and S8.
const (
	Ambiguous       ReasonCode = 1
	CountsDisagree  ReasonCode = 2
	Unrepresentable ReasonCode = 3
)

var reasonNames = [...]string{Ambiguous: "AMBIGUOUS", CountsDisagree: "COUNTS_DISAGREE", Unrepresentable: "UNREPRESENTABLE"}

// String returns the stable code of c, "" for none.
func (c ReasonCode) String() string { return nameOf(reasonNames[:], int(c)) }

// Reason is one entry of a status payload (S8): TxnID and Revision with Ambiguous, Day with the others.
type Reason struct {
	TxnID    string
	Revision Revision
	Day      Day
	Code     ReasonCode
}

// Status is the payload of a status output (S7, S8). Not Blocked is READY, with no reasons and More 0.
// Reasons holds at most MaxReasons ambiguous transactions and at most one further reason; More counts the
// ambiguous transactions beyond.
type Status struct {
	Reasons []Reason
	More    int64
	Blocked bool
}

// Equal reports whether s and o are the same payload.
func (s Status) Equal(o Status) bool {
	if s.Blocked != o.Blocked || s.More != o.More || len(s.Reasons) != len(o.Reasons) {
		return false
	}
	for i, r := range s.Reasons {
		if r != o.Reasons[i] {
			return false
		}
	}
	return true
}

// Change is one output version of a decision (S8). Close belongs to balances and alerts, Previous to alerts,
// Status (never nil then) to statuses; all are zero when not Present, which is a withdrawal.
// An alert's threshold is the configuration's.
type Change struct {
	Status   *Status
	Version  Version
	Close    int64
	Previous int64
	Day      Day
	Kind     OutputKind
	Present  bool
}

// Evidence is what quarantine keeps of a rejected record (S3): the exact bytes, cut to MaxValueBytes and
// MaxKeyBytes when the code is TooLarge, with both full lengths and SHA-256 sums over the full bytes.
// A nil Key or Value was absent; its length is 0 and its sum that of no bytes.
type Evidence struct {
	Key         []byte
	Value       []byte
	KeyLength   int64
	ValueLength int64
	KeySHA      [32]byte
	ValueSHA    [32]byte
}

// RecordDigest is the first 16 bytes of SHA-256 over a record's raw key and value, each preceded by its
// length as 8 bytes big endian, 2^64-1 when absent. Replay and deep verification compare it.
type RecordDigest [16]byte

// KeyID names a stock key within its namespace and partition in storage: the offset of its first valid record.
type KeyID int64

// Decision is what one source record changes (S8): its evidence (a class and an assertion, or a rejection with
// its quarantined bytes) and the new output versions, numbered from Sequence, which is meaningful only where
// there are Changes. KeyID is meaningful only for a valid record; NewKey says that this is the key's first.
type Decision struct {
	Assertion Assertion
	Evidence  *Evidence
	Changes   []Change
	Offset    Offset
	Sequence  Sequence
	KeyID     KeyID
	Timestamp int64
	Digest    RecordDigest
	Class     Class
	Rejection Rejection
	NewKey    bool
}

// Work counts what a batch of decisions cost (design: measurements). All are 0 or more.
type Work struct {
	Records      int64 // decisions
	Accepted     int64 // valid records
	Rejected     int64 // quarantined records
	RewindDays   int64 // the largest distance in days between the first day a decision refolded and the key's last day
	RefoldedDays int64 // days whose close was computed again
	Changed      int64 // output versions emitted, withdrawals included
	Withdrawn    int64 // withdrawals among them
}

// Add sums o into w; RewindDays takes the larger.
func (w *Work) Add(o Work) {
	w.Records += o.Records
	w.Accepted += o.Accepted
	w.Rejected += o.Rejected
	w.RewindDays = max(w.RewindDays, o.RewindDays)
	w.RefoldedDays += o.RefoldedDays
	w.Changed += o.Changed
	w.Withdrawn += o.Withdrawn
}

// Batch is what one transaction commits (S8): consecutive decisions of one partition. Expected is the frontier that
// must hold before, Next the one that holds after: past the last decision, and past control records and gaps seen
// behind it (S13). Without Decisions it is a bare move of the frontier. Sequences FirstSequence..NextSequence-1 are its outputs.
type Batch struct {
	Decisions     []Decision
	Work          Work
	Expected      Frontier
	Next          Frontier
	FirstSequence Sequence
	NextSequence  Sequence
	Partition     Partition
}
