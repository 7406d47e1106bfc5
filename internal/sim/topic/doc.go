// Package topic is a broker in memory, for simulations: topics with offsets, transactions, markers and incarnations.
//
// Owns: what a partition's log holds, what a read-committed reader may see of it, and that a topic created again is
// another one.
//
// Does not own: faults, clients, or who may write. Every method has its whole effect before it returns.
//
// Fails with: a panic where a caller names what does not exist.
package topic
