package broker

import "time"

// Budgets of calls to the broker. A role retries ErrUnavailable without limit; these bound one attempt.
const (
	DialTimeout      = 5 * time.Second
	RequestTimeout   = 15 * time.Second       // one administrative operation, its retries included
	DeliveryTimeout  = 15 * time.Second       // a record, from Produce to its acknowledgement
	produceGrace     = 5 * time.Second        // over the delivery timeout before Produce gives up waiting for its promises
	CloseTimeout     = 5 * time.Second        // leaving a group
	SessionTimeout   = 6 * time.Second        // a member that is silent this long is dead
	Heartbeat        = 2 * time.Second        //
	RebalanceTimeout = 60 * time.Second       // what a member may take to give up its partitions
	refusedWait      = 50 * time.Millisecond  // after a connection that was refused
	fetchWait        = 100 * time.Millisecond // a fetch without data; what resumes a held partition may have to wait for it
)

// Sizes of pages, in bytes.
const (
	FetchBytes          = 32 << 20 // one fetch of one broker
	FetchPartitionBytes = 4 << 20  // one partition of it; a larger batch is returned alone
	ProduceBatchBytes   = 1_000_000
	maxBatchMemory      = 256 << 20 // one batch after decompression
)
