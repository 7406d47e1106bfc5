package store

import "amends/internal/ledger"

// MaxSamples is how many samples a partition keeps (design, storage).
const MaxSamples = 32

// Sample is one commit that held decisions. All numbers are 0 or more; times in nanoseconds.
type Sample struct {
	Work      ledger.Work
	Lock      int64
	PreCommit int64
}

// Measurements are a partition's: Last is nil before the first; Total and Commits saturate at 2^63-1; Recent
// holds the latest MaxSamples, oldest first. A rollback, a fence, a bare move and a replay leave them alone.
type Measurements struct {
	Last    *Sample
	Recent  []Sample
	Total   Sample
	Commits int64
}
