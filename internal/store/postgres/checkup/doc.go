// Package checkup asks a PostgreSQL server what will matter later: what it is, how durable it is set, who is connected, what
// holds its WAL, and what the connecting role may do.
//
// Owns: one connection of its own, which no rule of session refuses, so that a server that cannot serve can be looked at too.
//
// Does not own: what an answer means (health).
//
// Fails with: store.ErrAddress, store.ErrUnavailable, and what the server refuses. It writes nothing.
package checkup
