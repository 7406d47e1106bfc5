// Package manifest reads and writes the configuration of a namespace.
//
// Owns: the manifest file of S2, its strict decoding and validation, the canonical form and digest of the
// configuration, the canonical encoding of strings and stock keys (S3) that digest and routing are computed
// over, and the routing of stock keys to partitions.
//
// Does not own: where the configuration is stored (store), the topics it names (broker), or the decoding of
// source records and envelopes (wire).
//
// Fails with: *Error, which says the member, what is wrong and what is allowed.
package manifest
