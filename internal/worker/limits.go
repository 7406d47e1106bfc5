package worker

import (
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
)

// Budgets of one operation on the store (S12, design section 3). The store bounds its own lock wait, statement and commit.
const (
	OperationTimeout = 15 * time.Second // one attempt
	RetryBudget      = 20 * time.Second // all attempts and their waits
	MaxAttempts      = 3
	FirstWait        = 100 * time.Millisecond
	SecondWait       = 200 * time.Millisecond
	LookAge          = 2 * time.Second // no commit trusts an older look at the topic
	lookEvery        = time.Second
	idleLook         = 5 * time.Second      // a partition without records reads its row this often
	missingGrace     = 3 * time.Second      // how long one broker of many may not know a topic yet
	awayWait         = time.Second          // the longest pause while a service is away
	fullWait         = 5 * time.Millisecond // between looks whether there is room for another poll
	StopGrace        = 5 * time.Second      // running work after a revoke or a shutdown, before it is cancelled
	closeTimeout     = 3 * time.Second      // leaving the group
)

// A partition must be given up before the group gives it to somebody else; and both callbacks of an assignment, each within
// its budget, must end before.
const (
	_ = uint(broker.RebalanceTimeout - RetryBudget - StopGrace)
	_ = uint(broker.RebalanceTimeout - 2*RetryBudget - StopGrace)
)

// claimsAtOnce is how many partitions of an assignment are claimed at the same time; half the connections of a pool.
const claimsAtOnce = 8

// Sizes of a batch: what a poll returned, up to these. The engine ends a batch at its own bound of outputs.
const (
	BatchRecords = 2_000
	BatchBytes   = 8 << 20
)

// Sizes in bytes of what a partition keeps in memory.
const (
	inboxBytes  = 16 << 20  // fetched and not yet decided; beyond it the partition is held
	inboxesAll  = 256 << 20 // that of all partitions together, divided among them where they are many; beyond it nothing is polled
	inboxLeast  = 1 << 20   // whatever their number
	CacheBytes  = 512 << 20 // key states of all partitions together, divided among them
	recordBytes = 128       // what a fetched record costs over its bytes
)

// SnapshotRows is how many rows of a key make a snapshot worth writing; fewer are loaded as fast.
const SnapshotRows = 1_000

// cachePartition is the least that a partition's states may take, in bytes.
const cachePartition = CacheBytes / ledger.MaxPartitions
