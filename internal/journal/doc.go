// Package journal packs what one decision changed into the few bytes that a journal row keeps (S8).
//
// Owns: the body of a journal row, and the strict reader of packed numbers that snapshots share.
//
// Does not own: the typed columns of the row (store), envelopes (wire), or what a decision is (engine).
//
// Fails with: ErrFormat for a format that this binary does not know, ErrChecksum for damaged bytes.
//
// # Format 1
//
//	body     = 0x01 change* crc
//	crc      = CRC32C of everything before it, 4 bytes, big endian
//	change   = header [delta] version value
//	header   = kind (bits 0-1: 1 balance, 2 alert, 3 status) | present (bit 2) | min(day step, 31) (bits 3-7)
//	delta    = uvarint(day step - 31), only where the header says 31
//	version  = uvarint
//	value    = nothing                                    where not present
//	         | varint(close - last)                       balance
//	         | varint(close - last) varint(previous - before)   alert
//	         | uvarint(2*reasons + blocked) reason* uvarint(more)   status; more only where blocked
//	reason   = code (1 byte) uvarint(length) txn_id uvarint(revision)   AMBIGUOUS
//	         | code (1 byte) uvarint(day)                               the others
//
// The day step is the distance to the day of the change before (to 0 for the first); a status, which has no day, has
// step 0. last is the close of the latest balance or alert in the body, before the close of the latest balance of an
// earlier day; both start at 0, and differences wrap around in 64 bits. uvarint and varint are those of encoding/binary
// in their shortest form. So every list of changes has exactly one body, and every accepted body one list.
package journal
