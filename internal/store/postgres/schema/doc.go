// Package schema brings the schema amends into a database and says whether it fits this binary.
//
// Owns: the numbered migrations, their ledger with SHA-256 checksums, and the order in which they are applied, under one
// advisory lock.
//
// Does not own: the statements that use the tables (store/postgres), or the format of what they hold.
//
// Fails with: store.ErrNoSchema, and store.ErrSchema naming each difference; what is refused changes nothing.
package schema
