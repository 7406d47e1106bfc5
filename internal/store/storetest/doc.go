// Package storetest is the suite that every store passes.
//
// Owns: the cases, one function each, and the interfaces that name what a store can do, split by job.
//
// Does not own: opening a store, or what only one store has (outcomes of lost connections, constraints, migrations).
//
// Fails with: test failures.
package storetest
