// Package delivery publishes the outbox (relay) and materializes the output topic (view), partition by partition (S9).
//
// Each partition of each role is a step machine, a Stepper, driven by explicit calls: by a Service in production, by a
// simulator in tests. A Service holds the leases, runs one goroutine a partition, waits for services that are away and
// decides what ends it.
//
//	relay   open ── last receipt's record, then the tail ──► scan ── matches become receipts ──► publish ──┐
//	          ▲                                               │  ahead of the outbox: wait                 │
//	          │                                               └─ other bytes: integrity stop               │
//	          └───────────────── a send without a known outcome: client closed ◄───────────────────────────┘
//
//	view    open ── position, seek ──► read ──► decide (package view) ──► one page ──► read
//	                                              │ refused: rows loaded, decided exactly
//	                                              └ violation: stored with the page, the partition stops durably
//
// While a page is in flight the next one is encoded and the receipt of the one before is written: a receipt follows its
// acknowledgement, and pages without one after a crash are what the tail scan is for.
//
// Owns: the order of reads, sends, receipts and commits; resolving unknown outcomes (S12); paging.
//
// Does not own: rules of the view (view), bytes of envelopes (wire), fencing (store), who holds a lease (lease).
//
// Fails with: store.ErrFence (exit 10), store.ErrIntegrity, store.ErrProtocol, *broker.IdentityError, *broker.RangeError and
// *StoppedError (11), ErrUnresolved (12), anything else (1). Services that are away are waited for.
package delivery
