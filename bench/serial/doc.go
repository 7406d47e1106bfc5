// Package serial is the baseline of the benchmarks: the obvious design, honestly written.
//
// Owns: one transaction a record that locks the partition, reads the key's whole state as one JSON value,
// refolds it, writes it back, upserts each output, inserts each outbox row and advances the frontier; a relay
// that publishes one envelope, waits, and records one receipt; a view with one transaction an envelope.
//
// Does not own: conflicts, counts, quarantine, fencing or recovery. The benchmark's streams hold movements,
// corrections, day moves and cancellations only. It is imported by the bench command and by tests, and by nothing else.
//
// Fails with: the database's errors, wrapped; ErrUnsupported for a record that it cannot represent.
package serial
