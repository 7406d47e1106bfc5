// Package report writes the report of a verification: for people, and as the documented JSON.
//
// Owns: the words of a report, its first line, and the JSON that only ever gains members.
//
// Does not own: what a report says (verify) or its exit code (verify, cli).
//
// Fails with: the errors of the writer given.
package report
