// Package memory is a store in memory, with the semantics of store/postgres.
//
// Owns: the state of namespaces under one mutex, deep copies of everything that goes in and comes out, lease expiry by
// an exchangeable clock and a server identity that a simulation can change.
//
// Does not own: decisions (engine, view), durability, or faults: each method has its whole effect before it returns, so
// that a wrapper can separate what became durable from what its caller sees.
//
// Fails with: the errors of package store. Nothing is ever unavailable or unknown here.
package memory
