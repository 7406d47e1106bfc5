// Package store holds the types and errors that every store shares.
//
// Owns: ownership tokens, positions, receipts, view pages and the errors on which callers branch.
//
// Does not own: decisions (engine, view) or a database. store/postgres and store/memory implement the
// operations; storetest is the suite that both pass. The interfaces belong to the callers (worker,
// delivery, verify).
//
// Stores never decide: they lock, compare and apply what a decision value says (S8, S9).
//
// Fails with: the errors of errors.go, whose comments say who returns them and what the caller must do.
package store
