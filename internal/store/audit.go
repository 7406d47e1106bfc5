package store

import (
	"time"

	"amends/internal/ledger"
)

// AuditState is what audits have left in the database. Now is the database's clock when it was read: ages are differences to
// it. Partitions holds one entry for each partition that an audit has looked at, in order; none before the first.
type AuditState struct {
	Now        time.Time
	Partitions []Audit
}

// Audit is what audits have found of one partition (S10). The cut (Frontier, and the view's position there) and Verified
// are those of the last cycle that found everything equal, on Server, which is zero where nobody noted it; Status, Differences and
// Detail are the last cycle's, at Checked. Verified and Full (when the last full cycle ended) are zero before the first. Saved is
// nil where no state is saved.
type Audit struct {
	Checked     time.Time
	Verified    time.Time
	Full        time.Time
	Saved       *SavedState
	Status      string
	Detail      string
	Server      Server
	Frontier    ledger.Frontier
	Output      ledger.Frontier
	Sequence    ledger.Sequence
	Cause       ledger.Offset
	Differences int64
	Partition   ledger.Partition
}

// SavedState describes the saved state of an audit's recomputation: it holds the source below Frontier. It is an
// accelerator for a restart, never an authority: what does not fit its checksum is read from the source again.
type SavedState struct {
	Frontier ledger.Frontier
	Format   int32 // 1 or more
	Chunks   int32 // 1..MaxAuditChunks
	Checksum [32]byte
}

// Bounds of a saved state.
const (
	AuditChunk     = 1 << 20 // bytes of one piece
	MaxAuditChunks = 128     // of one partition
)

// AuditCycle is what one cycle leaves of one partition. Verified: everything was equal at the cut, on Server, which becomes the
// verified one; otherwise that stays. Full: it was a full cycle.
type AuditCycle struct {
	Status      string
	Detail      string
	Server      Server
	Frontier    ledger.Frontier
	Output      ledger.Frontier
	Sequence    ledger.Sequence
	Cause       ledger.Offset
	Differences int64
	Partition   ledger.Partition
	Verified    bool
	Full        bool
}
