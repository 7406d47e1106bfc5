package store

import "amends/internal/ledger"

// Nonce is 16 random bytes that tell one claim or lease from any other.
type Nonce [16]byte

// Server names the database server's history: its system identifier and timeline as read at the claim and on
// every new connection (S1). A promotion changes the timeline.
type Server struct {
	System   uint64
	Timeline uint32
}

// Token is the ownership of a source partition (S1).
type Token struct {
	Epoch  ledger.Epoch
	Nonce  Nonce
	Server Server
}

// Owned is a partition row as read under its lock: the installed token, the frontier and the next emission sequence.
type Owned struct {
	Token    Token
	Frontier ledger.Frontier
	Sequence ledger.Sequence
}

// Timing is what a commit measured before it was sent, in nanoseconds, 0 or more.
type Timing struct {
	PreCommit int64 // from the begin of the transaction to the sending of COMMIT
	Lock      int64 // waited for the partition row
}

// What one Load returns at most, beyond its first key: journal rows, changed outputs in them, and bytes of snapshots. So a
// load takes bounded memory and no statement of it takes long, however much history the keys of a batch have.
const (
	LoadRows    = 20_000
	LoadChanges = 200_000
	LoadBytes   = 16 << 20
)

// KeyHistory is everything that rebuilds one stock key's state: a snapshot (nil if none), and the key's decisions
// after it, in offset order. Known is false for a key without valid records.
type KeyHistory struct {
	Key       ledger.StockKey
	Snapshot  []byte
	Decisions []ledger.Decision
	KeyID     ledger.KeyID
	Known     bool
}

// KeySnapshot is an encoded key state as of Frontier: an accelerator, never an authority (design, storage).
// Transactions counts the recorded rows that it stands for.
type KeySnapshot struct {
	State    []byte
	KeyID    ledger.KeyID
	Frontier ledger.Frontier
	Rows     int64
}

// Role names a delivery service that holds leases.
type Role string

// The roles with leases (S9).
const (
	Relay Role = "relay"
	View  Role = "view"
)

// Lease is the right to publish or materialize one partition: the term issued by the database and the holder's nonce.
// What counts are the term and nonce in the position row, which each commit compares (S9).
type Lease struct {
	Role      Role
	Holder    string
	Term      int64
	Nonce     Nonce
	Partition ledger.Partition
}
