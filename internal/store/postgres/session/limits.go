package session

import "time"

// The limits of time (design, worker). Total is what a caller may spend on an operation with its retries, and stays
// below the rebalance timeout of 60 s.
const (
	LockTimeout      = 3 * time.Second  // waiting for a row, by the server
	StatementTimeout = 10 * time.Second // one statement, by the server
	IdleTimeout      = 15 * time.Second // a silent client in a transaction, by the server
	OperationTimeout = 15 * time.Second // one operation up to its COMMIT, by the client
	CommitTimeout    = 10 * time.Second // COMMIT alone: statement_timeout does not bound it
	TotalTimeout     = 20 * time.Second // an operation with its retries
	BlockedAfter     = 1 * time.Second  // then a claimant ends the backend that blocks it
	MigrateTimeout   = 5 * time.Minute  // all missing migrations together
	AbandonTimeout   = 2 * time.Second  // COMMIT once its caller was cancelled: a role that is told to stop has 10 s in all
	CleanupTimeout   = 2 * time.Second  // rolling back or closing
)

const rebalanceTimeout = 60 * time.Second

// The budget of an operation ends before the group moves the partition.
const _ = uint(rebalanceTimeout - TotalTimeout - 1)

// Limits of size.
const (
	defaultConns   = 16
	copyChunkBytes = 256 << 10 // one CopyData message is ended past this
)
