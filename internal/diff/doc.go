// Package diff compares what a key's days derive with what was last published and numbers the differences (S8).
//
// Owns: which balances and alerts change, are withdrawn or come back, their versions and their order; the rule of
// alerts (S6).
//
// Does not own: how closes are derived or how far a refold reaches (fold), the trust status's reasons and the freezing
// of blocked keys (engine). It changes nothing: fold.Days.Commit notes what is published.
//
// Fails with: ErrExhausted where a version would pass 2^63-1.
package diff
