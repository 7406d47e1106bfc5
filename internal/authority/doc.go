// Package authority keeps the evidence of one stock key and says which assertion of each transaction applies (S4).
//
// Owns: every recorded (revision, payload) of every transaction, the class of a record, which transactions are
// ambiguous, and how all this is kept in few bytes.
//
// Does not own: what follows for days (fold) or for outputs (diff, engine).
//
// Fails with: nothing. Every valid assertion has a class.
//
// # How the evidence is kept
//
// A transaction is 32 bytes in one slice: its highest revision with the payload recorded first there, which is its
// authority unless the transaction is ambiguous, and where its txn_id lies in one arena of bytes. Most transactions
// have no other evidence. What else was recorded lies in a second slice, found by two hashes: of (transaction,
// revision) for the payload recorded first at a superseded revision, and of (transaction, revision, payload) for
// the further ones. So every question of S4 costs a constant number of probes, however long a transaction's history.
// Both tables hash with a secret seed, so that a source cannot choose identifiers that collide; no result depends on it.
package authority
