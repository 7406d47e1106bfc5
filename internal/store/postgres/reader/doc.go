// Package reader reads a namespace for people and for proofs: one consistent state, without a lock that anybody waits for.
//
// Owns: the read-only statements behind verification, explanation, inspection and diagnostics.
//
// Does not own: what workers, relays and views read on their way (postgres), or what the rows mean.
//
// Fails with: store.ErrUnavailable, store.ErrIntegrity for what is damaged, store.ErrSchema for another binary's format.
package reader
