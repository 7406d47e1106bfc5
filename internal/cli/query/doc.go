// Package query holds the commands that answer about numbers: explain, balance, history, diff and tail.
//
// Owns: their arguments and flags, and how their answers are written: for people, as JSON (docs/reference/schemas) and, where
// they are rows, as CSV.
//
// Does not own: the answers themselves (explain), or how rows are read (reader).
//
// Fails with: *usage.Error for wrong arguments, *explain.NoKey (exit 1) for a key without a valid record, and the errors of
// explain and of cli/target. A read-only command creates nothing.
package query
