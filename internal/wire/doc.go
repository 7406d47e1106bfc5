// Package wire turns bytes into the values of the vocabulary and back, strictly: one way to read a source
// record (S3), one way to write and to read an envelope (S8).
//
// Owns: the decoding of source records with the order of their rejections, quarantine evidence, record and
// envelope digests, broker keys, and the one encoder of schema 1 that never changes.
//
// Does not own: the canonical encoding of strings and keys and the routing of keys (manifest), how the oracle
// decodes (oracle), or what a record changes (engine).
//
// Fails with: a ledger.Rejection for source records, which is a value and no error; *Problem, which says where
// and why, for loaders and for envelopes that are not their own canonical encoding.
package wire
