// Package migrate holds the commands of the database's schema: what is applied, what would be, applying it, and who may do what in it.
//
// Owns: the flags, the answers and the codes of migrate status, plan and up, and of grants.
//
// Does not own: the migrations (store/postgres/schema), or which role may do what (store/postgres/grants).
//
// Fails with: the errors of store, and a *usage.Verdict (13) where status finds a schema that does not fit.
package migrate
