// Package session holds connections to PostgreSQL and tells how their transactions end.
//
// Owns: the pool with the limits of time and size, the identity of the server of each connection, pipelines with COPY in
// binary form, COMMIT with its four outcomes, and classify, the one place that tells errors apart.
//
// Does not own: statements (the caller names them) or what they mean.
//
// Fails with: store.ErrUnavailable, store.ErrCommitUnknown, store.ErrNotReplicated, store.ErrNoSchema; anything else is
// what the server said, with nothing durable.
package session
