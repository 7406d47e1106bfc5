package reader

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store/postgres/session"
)

// Recorded calls fn with the source offset and the digest of every journal row of a partition, in offset order: all that a
// replay compares (S11). It reads no body and no key.
func (r *Snapshot) Recorded(ctx context.Context, p ledger.Partition, fn func(ledger.Offset, ledger.RecordDigest) error) error {
	verb := fmt.Sprintf("read digests of partition %d", p)
	return r.stream(ctx, verb, "replay_journal", func(v [][]byte) error {
		var d ledger.RecordDigest
		copy(d[:], v[1])
		return fn(ledger.Offset(session.ReadInt64(v[0])), d)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)))
}
