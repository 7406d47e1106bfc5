package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// RecordVerification keeps a finished verification (S10); the database's clock says when it finished. An audit's cycle is left out
// where the newest verification is one that says the same (store.Verification.Same) and is younger than store.SameAuditEvery.
func (n *Namespace) RecordVerification(ctx context.Context, v store.Verification) error {
	if !store.ValidStatus(v.Status) {
		return fmt.Errorf("record verification: status %q: %w", v.Status, store.ErrProtocol)
	}
	boundary, err := json.Marshal(append([]store.Cut{}, v.Boundary...))
	if err != nil {
		return fmt.Errorf("record verification: %w", err)
	}
	return n.db.pool.Transact(ctx, "record verification", func(ctx context.Context, s *session.Session) error {
		_, err := s.Exec(ctx, "insert_verification", v.Started, v.Keys, v.Outputs, v.Differences, n.id, v.Quiesced, v.Deep, v.Audit,
			v.Status, string(boundary), store.PlainText(v.Detail), store.SameAuditEvery.Seconds())
		return err
	})
}

// LastVerification returns the verification recorded last, nil if there is none.
func (n *Namespace) LastVerification(ctx context.Context) (last *store.Verification, err error) {
	err = n.db.pool.Read(ctx, "read last verification", func(ctx context.Context, s *session.Session) error {
		var v store.Verification
		var boundary []byte
		err := s.QueryRow(ctx, []any{&v.Started, &v.Finished, &v.Keys, &v.Outputs, &v.Differences, &v.Quiesced, &v.Deep, &v.Audit,
			&v.Status, &boundary, &v.Detail}, "last_verification", n.id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		last = &v
		return json.Unmarshal(boundary, &v.Boundary)
	})
	return last, err
}
