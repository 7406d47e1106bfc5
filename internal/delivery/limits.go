package delivery

import "time"

// Budgets (S12, design: the table of limits).
const (
	operationBudget   = 20 * time.Second // an operation with its retries and the resolution of unknown outcomes
	operationAttempts = 3
	retryWait         = 100 * time.Millisecond // before the second attempt; twice that before the third
	drainTimeout      = 5 * time.Second        // what is in flight when a role is told to stop
	checkEvery        = 2 * time.Second        // the output topic's settings
	missingTopic      = 5 * time.Second        // a topic that is not there for so long was deleted
)

// Pages. A page grows with the lag up to these.
const (
	RelayPageOutputs = 10_000
	RelayPageBytes   = 4 << 20
	ViewPageOutputs  = 50_000
	unreceipted      = 200_000 // acknowledged outputs that may wait for their receipt
)

// Waits of a partition with nothing to do.
const (
	idleFirst  = time.Millisecond
	idleMost   = 20 * time.Millisecond
	awayFirst  = 100 * time.Millisecond
	awayMost   = time.Second
	pollWait   = 200 * time.Millisecond // a view's read without records
	growWait   = 20 * time.Millisecond  // a lagging view's read for a larger page
	tailWait   = 200 * time.Millisecond // the worker behind what the topic holds
	closeGrace = 3 * time.Second
)
