// Package console runs a person's own statements against the database so that nothing can be changed by them.
//
// Owns: the one connection, the transaction around each statement, and which statements are taken at all.
//
// Does not own: how statements are typed and rows are shown (cli/console).
//
// Fails with: *Refused for a statement that does not read or is wrong, store.ErrNoSchema where the database has none, and
// store.ErrUnavailable where the server is away.
//
// # Why nothing can be changed
//
//   - A statement begins with SELECT, WITH, TABLE, VALUES, SHOW or EXPLAIN, so it is neither a transaction command nor COPY
//     to a program, DO, CALL, SET, LISTEN or LOCK.
//   - It is sent by the extended protocol, which takes exactly one statement.
//   - It runs in its own REPEATABLE READ READ ONLY transaction. PostgreSQL refuses to make a transaction writable once it
//     has a snapshot, and a query has one before any function of it runs. The transaction is always rolled back, so what
//     a function has set is gone with it.
//   - A superuser's statement runs as pg_read_all_data, which may read every table and neither server files nor programs.
//   - Session locks that a function took are given up after each statement.
//
// What remains is what PostgreSQL lets the connecting role do by functions that are no writes, such as ending its own
// backends: connect as a role that may only read where people are not trusted with that.
package console
