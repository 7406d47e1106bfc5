package upkeep

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// RecordAudit keeps what one cycle found of each partition; the database's clock says when.
func (u *Upkeep) RecordAudit(ctx context.Context, cycle []store.AuditCycle) error {
	for _, c := range cycle {
		if !store.ValidStatus(c.Status) {
			return fmt.Errorf("record audit: status %q: %w", c.Status, store.ErrProtocol)
		}
	}
	return u.pool.Transact(ctx, "record audit", func(ctx context.Context, s *session.Session) error {
		for _, c := range cycle {
			var system, timeline *int64
			if c.Server != (store.Server{}) {
				system, timeline = new(int64(c.Server.System)), new(int64(c.Server.Timeline))
			}
			if _, err := s.Exec(ctx, "record_audit", u.namespace, c.Partition, c.Frontier, c.Sequence, c.Cause, c.Output, c.Differences,
				c.Status, store.PlainText(c.Detail), c.Verified, c.Full, system, timeline); err != nil {
				return err
			}
		}
		return nil
	})
}

// SaveAudit replaces the saved state of a partition that RecordAudit knows. chunks are its bytes in pieces of at most
// store.AuditChunk, 1..store.MaxAuditChunks of them.
func (u *Upkeep) SaveAudit(ctx context.Context, p ledger.Partition, saved store.SavedState, chunks [][]byte) error {
	if len(chunks) < 1 || len(chunks) > store.MaxAuditChunks || int(saved.Chunks) != len(chunks) {
		return fmt.Errorf("save audit state of partition %d: %d chunks: %w", p, len(chunks), store.ErrProtocol)
	}
	verb := fmt.Sprintf("save audit state of partition %d", p)
	return u.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		// The row is locked first: of two who save at once, or a repetition and its own late COMMIT, one waits for the other.
		n, err := s.Exec(ctx, "save_audit_state", u.namespace, p, saved.Frontier, saved.Format, saved.Chunks, saved.Checksum[:])
		if err == nil && n != 1 {
			err = fmt.Errorf("no cycle of it is recorded: %w", store.ErrProtocol)
		}
		if err == nil {
			_, err = s.Exec(ctx, "delete_audit_chunks", u.namespace, p)
		}
		for i := 0; i < len(chunks) && err == nil; i++ {
			_, err = s.Exec(ctx, "insert_audit_chunk", u.namespace, p, int32(i), chunks[i])
		}
		return err
	})
}

// trimAtOnce bounds the rows that one TrimVerifications removes.
const trimAtOnce = 10_000

// TrimVerifications removes what audits recorded among the verifications beyond store.MaxAuditRows, some of it where there is much.
// What says most of now stays (reader.Snapshot.LastVerification).
func (u *Upkeep) TrimVerifications(ctx context.Context) error {
	return u.pool.Transact(ctx, "trim verifications", func(ctx context.Context, s *session.Session) error {
		_, err := s.Exec(ctx, "trim_verifications", u.namespace, int64(store.MaxAuditRows), int64(trimAtOnce))
		return err
	})
}
