// Package ledger is the vocabulary of amends: distinct types for every
// coordinate, the limits of the contract, and decisions as values.
//
// Owns: the terms of S1 as Go types, calendar days, the codes of S3, S4 and S7,
// the value of a decision (S8) and the limits of S2 and S3.
//
// Does not own: how bytes become these values (wire), what applies (authority),
// what follows from it (fold, diff, engine) or where it is kept (store).
//
// Fails with: nothing. Its functions are total; parsing reports ok or not.
package ledger
