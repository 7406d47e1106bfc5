// Package audit keeps proving that the view is what the source says, at a cost that follows what is new (S10).
//
// Owns: when a cycle runs and whether it is a full one; the state that it goes on from, in memory and, packed with a
// checksum, in the database; and what a cycle leaves there: the verified cut of each partition with its time, and a row in
// verifications where something is to be told.
//
// Does not own: what a cycle compares (verify), the recomputation (oracle), or how ages and statuses are shown (inspect,
// the commands).
//
// Fails with: what no further cycle can mend: verify.ErrUnbound, store.ErrSchema, ErrNoSchema, ErrNoNamespace and ErrConfig.
// Anything else costs one cycle and is logged, for an audit stands beside roles that must go on. What it finds is a Cycle,
// never an error, and is told also where it cannot be recorded.
//
// A full cycle recomputes everything from the source, deep; it runs first where no state can be gone on from, on another server
// than the one that was verified, every FullEvery, and, while something differs or the last one ended UNAVAILABLE, as often as keeps it
// to a tenth of the time. Every other cycle extends the state by the records that are new and compares the outputs that changed. A
// cycle that says what the newest verification says adds a row a minute; the newest store.MaxAuditRows stay. The state is saved after a full cycle, after a million records and at
// the end (of a single cycle only where a twentieth is new): what is lost with a process is read from the source again.
package audit
