// Package upkeep writes the little that commands keep beside the data path: what an audit has verified and what it needs to
// go on, how many of its findings are kept, and how far a rebuild is.
//
// Owns: the statements that write those tables, each operation in one transaction of its own.
//
// Does not own: reading them (reader), or what is written.
//
// Fails with: the errors of the connection (store.ErrUnavailable, store.ErrCommitUnknown), and store.ErrProtocol for what no
// caller may ask for. Every write may be repeated.
package upkeep
