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
	relayOutputs     = 1_000_000 // the pages of all partitions together
	relayBytes       = 256 << 20 // the same
	ViewPageOutputs  = 250_000   // decoded and held; several versions of an output are one row
	ViewPageRows     = 50_000    // written by one transaction
	viewOutputs      = 1_000_000 // the pages of all partitions together
	patience         = 3         // how many times as long as the last commit took a busy view's page may grow
	patientRows      = 1_000     // a page from which on the next one waits to grow
	unreceipted      = 200_000   // acknowledged outputs that may wait for their receipt
)

// Waits of a partition with nothing to do.
const (
	idleFirst    = time.Millisecond
	idleMost     = 20 * time.Millisecond
	idleEach     = 500 * time.Microsecond // the same, of so many partitions: together they ask the database 2,000 times a second
	awayFirst    = 100 * time.Millisecond
	awayMost     = time.Second
	pollWait     = 200 * time.Millisecond // a view's read without records
	mostPatience = 3 * time.Second        // a page of a busy view under way, whatever the last one took
	growWait     = 100 * time.Millisecond // a view's read for a larger page, where the topic holds more
	gapWait      = 20 * time.Millisecond  // the same, where more may come
	tailWait     = 200 * time.Millisecond // the worker behind what the topic holds
	closeGrace   = 3 * time.Second
)
