// Package broker is the only wrapper of the Kafka client.
//
// Owns: topic identity and settings (Admin), reading partitions by coordinates (Reader), the source consumer group
// (Group), publishing with known offsets (Producer), TLS and credentials of connections (Security), and what each failure says
// about the broker.
//
// Does not own: what a record means (wire), where a frontier is kept (store), who decides (worker, delivery, verify).
//
// Fails with: ErrUnavailable (nothing was sent, or only a read), ErrUnknownOutcome, ErrRefused, ErrNoTopic,
// ErrTopicExists, ErrSession, ErrUnreadable, ErrClosed; *IdentityError and *RangeError, which are integrity stops.
//
// Invariants, each with its reason:
//   - No offset is ever reset: a position that the log does not hold is a *RangeError. The client's own default goes
//     back a minute, which would be read as a gap.
//   - Reads are read committed and keep control records inside, so that Fetched.Next moves over a marker because the
//     marker was returned, never because of a high watermark (S13). No control record leaves the package.
//   - The topic id of each fetch is compared; the client itself never adopts the id of a recreated topic.
//   - Seeks carry leader epoch -1: the position comes from PostgreSQL, the epoch of a commit never kept would be a guess.
//   - Sends are never cancelled, which could acknowledge a record that was not written; a send that outlasts its
//     budget has an unknown outcome, and the producer is then good for nothing but Close.
//   - Lock order: the group's callbacks run under the client's group lock; Group.mu is a leaf and is never held while
//     a callback or the client is called.
package broker
