// Package trigger is the second peer of the benchmarks: what a good PostgreSQL team builds in an afternoon.
//
// Owns: a table of movements with a row trigger that shifts the daily closes of the affected suffix, filled in
// batches of 500 records with the source offset in the same transaction; alerts as a query over the closes.
//
// Does not own: publication, versions, causes, conflicts, counts, quarantine, fencing or proof. Of several
// revisions in one batch it applies the last. It is imported by the bench command and by tests, and by nothing else.
//
// Fails with: the database's errors, wrapped; ErrUnsupported for a record that it cannot represent.
package trigger
