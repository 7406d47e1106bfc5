// Package fold aggregates what applies on each business day of one stock key and derives closes from it (S5).
//
// Owns: the exact sum of receipts and issues of a day, its counts and whether they agree, the derivation of a close from
// the one before, how far a change reaches (the affected suffix), and what was last published of each day.
//
// Does not own: which assertions apply (authority), alerts and versions (diff), the trust status (engine).
//
// Fails with: nothing. A close that does not fit int64 is a day reported, counts that disagree too.
//
// # How days are kept
//
// A day is 32 bytes: its distance from the ledger origin (16 bits, since the horizon is 36,525 days), flags, the number
// of active movements and counts, the sum, the published close and the published versions of balance and alert. What is
// rare lies in a side table: counts, the upper half of a sum beyond int64, versions beyond 32 bits. Days are sorted, in
// chunks of at most 128, so that a late first movement of an early day shifts at most one chunk. Of an alert only its
// version and presence are kept: when a key is published it is published whole, so the published closes determine what
// every alert said.
//
// # How far a refold goes
//
// Refold walks days upwards and carries two closes: the derived and the published one of the latest day before. Where
// they are equal nothing after can change, so the walk ends, or jumps to the second day that a moved assertion touches.
package fold
