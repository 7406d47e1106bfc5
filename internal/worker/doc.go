// Package worker is the source role: it turns source records into committed decisions.
//
// Owns: the group membership of a namespace (Run), who may commit which partition and from where (Lifecycle), the steps
// from fetched records to an acknowledged commit (Partition), the resolution of unknown commits (S12), the freshness of
// the topic's identity, and when a key's state is loaded, kept, dropped and saved.
//
// Does not own: what a record means (wire), what it changes (engine), the transaction (store), the client (broker),
// delivery. It never decides by a clock and keeps no position but PostgreSQL's.
//
// Fails with: store.ErrFence (exit 10); ErrIntegrity, store.ErrIntegrity, *broker.IdentityError, *broker.RangeError (11);
// ErrUnresolved (12); ErrRetries, store.ErrExhausted, broker.ErrRefused (1); the errors of a schema or namespace that
// does not fit (13). A service that is away is waited for.
//
// The lifecycle of a partition, driven by the group's callbacks, which never run while a poll is unreleased:
//
//	           Assigned                Positions
//	[absent] ------------> [claimed] ------------> [running] --+
//	   ^      claim: epoch     |      token checked,   |       | records
//	   |      installed        |      seek, Partition  |       v
//	   |                       |      started          |   Partition.Step ...
//	   |   Revoked, Lost,      |                       |       |
//	   +--- shutdown ----------+-----------------------+       | terminal error
//	        no commit is issued after the stop;                v
//	        running work is joined before it returns       [ended]: the whole role ends
//
// The steps of one partition. Every arrow is one call of Step, which does at most one thing that can block:
//
//	            records            engine.Step             acknowledged
//	[fetching] ---------> [deciding] ----------> [committing] ----------> [fetching]
//	                       ^   |  ^                 |    ^  |
//	  load failed: wait ---+---+  |                 |    |  | unknown: cache dropped
//	                              |    not written: |    |  v
//	                              +--- cache dropped+    | [resolving] -- same token, new frontier --> [fetching]
//	                              |                      |    |  |
//	                              |   same token, old ---+----+  +-- another epoch or nonce --> store.ErrFence
//	                              |   frontier: same bytes    |
//	                              +------- [claiming] <-------+ another server: cache dropped, seek
//
// Invariants, each with what it prevents:
//   - Frontier, sequence and records of a commit are fields of one batch value, never read from shared memory when it is
//     sent.
//   - The cached states are those of the position that the last acknowledged commit left; any other outcome drops them.
//   - A commit needs a look at the topic's identity that began less than two seconds ago.
//   - A partition with nothing to commit reads its row every five seconds, so that a failover which lost a committed tail
//     is made good without waiting for the next record.
//   - The assignment callback installs the epoch; the offset callback only reads it back. Nothing else claims but the
//     partition's own steps after a promotion, and those are joined before Revoked returns.
//   - Lock order: Lifecycle.mu, then inbox.mu, then identity.mu; no lock is held while the client is polled.
package worker
