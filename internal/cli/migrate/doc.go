// Package migrate holds the commands of the database's schema: what is applied, what would be, and applying it.
//
// Owns: the flags, the answers and the codes of migrate status, plan and up.
//
// Does not own: the migrations (store/postgres/schema).
//
// Fails with: the errors of store, and a *usage.Verdict (13) where status finds a schema that does not fit.
package migrate
