// Package postgres is the production store: PostgreSQL 15 to 18.
//
// Owns: the schema amends with its migrations, the SQL of every operation (one file each in sql/), transactions and their
// outcomes, the binary COPY of journal rows, server identity, and the limits of time.
//
// Does not own: decisions (engine, view), envelope bytes (wire), the packed body of a journal row (journal).
//
// Fails with: the errors of package store. One function, classify, tells definite, unavailable and cancelled apart; only
// commit can end unknown.
//
// # Transactions
//
// A writing transaction is two flights to the server. The first is one pipeline: BEGIN, the statement that locks and
// fences, the COPY streams, the updates, Sync. Whatever fails in it makes the server skip the rest, so a fenced writer
// writes nothing. The second is COMMIT alone, as a simple query with a deadline of its own: until it is sent nothing
// durable can have happened, and after an error in the first it would roll back. A connection whose outcome is unknown is
// closed, never used again.
//
// # Lock order
//
// advisory lock of bindings, then output_binding; lease row, then position row (relay_progress or view_progress);
// partition row alone. A reader takes no row lock; Observe, RelayPosition and ViewPosition take their one row.
//
// # Non-obvious
//
// A pgconn error of ReceiveMessage calls itself safe to retry even after a request was sent: never ask it in a pipeline.
// The identity of a connection is read when it opens. A promotion ends connections, so it cannot change under one.
package postgres
