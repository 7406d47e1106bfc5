// Package verify proves, or disproves, that the view is what the source says (S10).
//
// Owns: the cut and the boundary of a verification, live and quiesced; reading the complete source prefix from the topic
// into the oracle; the comparison of every output with the view rows of one snapshot, of every row with its envelope's
// digest, and (deep) of the journal with the source, the journal's outputs with the output topic, the receipts and the
// fold of that topic with the view; the cycles of an audit, which extend what is there and compare what changed; the
// statuses of S10 and the report.
//
// Does not own: what must be published (oracle, which shares nothing with the worker), how stores keep it, or exit
// codes beyond a status's own.
//
// Fails with: ErrUnbound for a manifest without output; the errors of broker and store, wrapped, for operational
// failures, which print no status. Everything that verification is there to find is a Report, not an error.
//
// Order of a quiesced run: identity, loader's guard, high watermarks, source prefix up to them, wait for a cut at or past
// them, one snapshot, what the cut has beyond the watermarks, comparison, identity again. The oracle is extended, never
// taken back, so the prefix is read once. A cut can move back: the view was at the partition's frontier, past records
// without outputs, and then lacks the next output; or a failover lost a tail. It is waited for, and only where it stays
// behind is the source read again from the start, with no snapshot open.
package verify
