// Package console is amends sql: looking at the database without psql.
//
// Owns: where statements come from (a flag, stdin, a prompt on a terminal), and how rows are written.
//
// Does not own: what keeps a statement from writing (store/postgres/console).
//
// Fails with: *usage.Error for a statement that does not read or that the server refuses as wrong, and what opening the
// database fails with.
package console
