package verify

import (
	"fmt"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/verify/stored"
)

// Status is the overall outcome of a verification (S10).
type Status string

// The statuses, in the order in which the first that applies is taken.
const (
	Unavailable Status = "UNAVAILABLE"
	Incomplete  Status = "INCOMPLETE"
	Drift       Status = "DRIFT"
	Blocked     Status = "BLOCKED"
	Pass        Status = "PASS"
)

// ExitCode returns the code that a status ends a command with (S10).
func (s Status) ExitCode() int {
	switch s {
	case Pass:
		return 0
	case Incomplete:
		return 3
	case Blocked:
		return 4
	case Drift:
		return 5
	}
	return 6
}

// Code names why a verification is UNAVAILABLE or INCOMPLETE. The names are stable.
type Code string

// The codes of reasons.
const (
	SourceIdentity     Code = "SOURCE_IDENTITY"
	OutputIdentity     Code = "OUTPUT_IDENTITY"
	HistoryTruncated   Code = "HISTORY_TRUNCATED"
	HistoryUnreadable  Code = "HISTORY_UNREADABLE"
	Configuration      Code = "CONFIGURATION"
	LoadRunning        Code = "LOAD_RUNNING"
	OpenTransaction    Code = "OPEN_TRANSACTION"
	SourceNotRead      Code = "SOURCE_NOT_READ"
	SourceNotProcessed Code = "SOURCE_NOT_PROCESSED"
	OutboxNotDrained   Code = "OUTBOX_NOT_DRAINED"
	ViewBehind         Code = "VIEW_BEHIND"
	PartitionStopped   Code = "PARTITION_STOPPED"
	NotCompared        Code = "NOT_COMPARED"
)

// Reason is one cause of UNAVAILABLE or INCOMPLETE with the first missing coordinate of its stage. Partition, Offset and
// Sequence are -1 where they do not apply.
type Reason struct {
	Code      Code
	Detail    string
	Offset    int64
	Sequence  int64
	Partition ledger.Partition
}

// Boundary is the cut that a partition was compared at: the source offsets below SourceEnd, the output offsets below
// OutputEnd (the view's frontier).
type Boundary struct {
	SourceEnd ledger.Frontier
	OutputEnd ledger.Frontier
	Partition ledger.Partition
}

// BlockedKey is a key that the oracle finds BLOCKED, with its status payload.
type BlockedKey struct {
	Key       ledger.StockKey
	Status    ledger.Status
	Partition ledger.Partition
}

// What says how an output differs. The names are stable.
type What string

// The kinds of differences.
const (
	Missing    What = "MISSING"    // expected, but no row or a withdrawn one
	Unexpected What = "UNEXPECTED" // present, but not expected
	Value      What = "VALUE"      // another payload than expected
	Row        What = "ROW"        // the row contradicts itself, its envelope's digest or its position
	Journal    What = "JOURNAL"    // a journal row is not what its source record says (deep)
	Topic      What = "TOPIC"      // the output topic does not hold the journal's outputs, or a receipt's (deep)
	Fold       What = "FOLD"       // the view is not the fold of the output topic (deep)
)

// Side is one side of a difference; Payload is nil when not present.
type Side struct {
	Cause   *store.Cause // of the row; nil where only the oracle speaks
	Payload *Payload
	Sources []store.Cause // the source records that decide the value, in offset order, at most MaxSources
	Version ledger.Version
	Present bool
}

// MaxSources bounds the source records that a difference names.
const MaxSources = 16

// Payload is what an output states: one of the three.
type Payload struct {
	Status    *ledger.Status
	Close     int64
	Previous  int64
	Threshold int64
	Kind      ledger.OutputKind
}

// Difference is one output, journal row or topic record that is not what it must be. Offset is a source offset for
// Journal, an output offset for Topic, else -1.
type Difference struct {
	What      What
	Detail    string
	ID        ledger.OutputID
	Expected  *Side
	Actual    *Side
	Offset    int64
	Partition ledger.Partition
}

// describe says in one line what differs.
func (d *Difference) describe() string {
	at := ""
	if d.ID.Kind != 0 {
		at = stored.Name(d.ID) + ": "
	} else if d.Offset >= 0 {
		at = fmt.Sprintf("offset %d: ", d.Offset)
	}
	return fmt.Sprintf("%s %s%s", d.What, at, d.Detail)
}

// Report is the outcome of one verification.
type Report struct {
	First         *Difference
	Namespace     string
	Status        Status
	Mode          string // quiesced or live
	Boundary      []Boundary
	Blocked       []BlockedKey
	Reasons       []Reason
	SourceRecords int64
	Rejected      int64
	Outputs       int64 // view rows compared
	Messages      int64 // output versions applied, the sum of next sequences
	Differences   int64
	Keys          int64 // keys compared
	Elapsed       time.Duration
	Deep          bool
	Parts         []Part // of an audit's cycle, by partition
	byPartition   map[ledger.Partition]*Part
}

// Part is what a cycle of an audit found of one partition. Cut is the verified one: that of this cycle if Verified, else
// that of the last cycle that found everything equal.
type Part struct {
	Status      Status
	Detail      string // what differs first, or why it was not compared
	Cut         Cut
	Differences int64
	Partition   ledger.Partition
	Verified    bool
	Stopped     bool // and so no cycle compares it
}

// add counts a difference and keeps the first.
func (r *Report) add(d Difference) {
	r.Differences++
	if r.byPartition == nil {
		r.byPartition = map[ledger.Partition]*Part{}
	}
	if x := r.byPartition[d.Partition]; x != nil {
		x.Differences++
	} else {
		r.byPartition[d.Partition] = &Part{Differences: 1, Detail: d.describe()}
	}
	if r.First == nil {
		r.First = &d
	}
}

func (r *Report) because(code Code, p ledger.Partition, offset, sequence int64, detail string) {
	r.Reasons = append(r.Reasons, Reason{Code: code, Partition: p, Offset: offset, Sequence: sequence, Detail: detail})
}

// conclude sets the first status that applies once everything that can be compared was. A stopped partition, which only an
// audit leaves out, outweighs what differs on the others; outputs that the worker has yet to decide do not.
func (r *Report) conclude() {
	stopped := slices.ContainsFunc(r.Reasons, func(x Reason) bool { return x.Code == PartitionStopped })
	switch {
	case stopped, len(r.Reasons) > 0 && r.Differences == 0:
		r.Status = Incomplete
	case r.Differences > 0:
		r.Status = Drift
	case len(r.Blocked) > 0:
		r.Status = Blocked
	default:
		r.Status = Pass
	}
}
