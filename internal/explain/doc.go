// Package explain says of a published number what it is, since when, why, and what was said before.
//
// An Account reads the decisions of one stock key in offset order and knows, after any prefix of them, what was published
// (S8) and which assertions it is the sum of (S5). While a key is BLOCKED its outputs stay frozen (S7), so the sum is over
// the authority as of just before the record that blocked it: what changes after is kept aside until the key is READY.
//
//	journal rows of a key ---> Account ---> balance of a day, the lines that add up to it, versions with their causes
//
// Owns: points of knowledge (a source offset or a time), the lines of a sum, what a source record did to its
// transaction, what changed between two points, and the refusal of a key that has no record.
//
// Does not own: reading rows (reader), how answers look (cli/query), or whether they are right (verify). Classes and
// outputs are taken as recorded; that a sum meets its balance is checked each time.
//
// Fails with: *NoKey for a key without a valid record, *PointError for a point that names another partition,
// store.ErrIntegrity where the lines do not add up to what was published, and the errors of reader.
package explain
